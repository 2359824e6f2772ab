"""Browser tests of the Model page, on which a window with or without a sink replaces a language model's attention."""

import re

from browser import chart, press, query, settle, visit
from playwright.sync_api import expect

WINDOW, SINK = "Local · window 64", "Attention sinks · window 64 · sinks 1"


def test_a_sink_restores_the_perplexity_of_a_window_but_not_copying(page, server, other_page):
    visit(page, f"{server}/model")
    window, sink = (page.get_by_role("radio", name=name, exact=True) for name in ("Local", "Attention sinks"))
    expect(window).to_have_attribute("aria-checked", "true")
    assert page.get_by_role("row", name=WINDOW).get_by_role("cell").all_text_contents() == [
        "65",
        "71.0",
        "2.18",
        "13.2",
    ]
    assert page.get_by_text("Recorded on").count()

    window.press("ArrowRight")
    expect(sink).to_be_focused()
    expect(sink).to_have_attribute("aria-checked", "true")
    settle(page)
    assert "m_shown=1" in query(page)
    token = page.locator("[data-token='100']")
    place = token.bounding_box()
    token.click()
    expect(page.get_by_text("changes most in layer")).to_be_visible(timeout=60_000)
    assert token.bounding_box() == place, "a selection moves the text"
    expect(token).to_have_attribute("aria-pressed", "true")
    settle(page)
    assert "m_token=100" in query(page)
    token.press("ArrowRight")
    expect(page.locator("[data-token='101']")).to_be_focused()

    expect(page.get_by_text("Largest decrease in loss: “")).to_be_visible()
    page.get_by_role("combobox", name="Compared with").select_option("Local")
    expect(page.get_by_text("Largest loss changes in nats:")).to_be_visible()
    settle(page)
    assert "m_against=1" in query(page)

    page.get_by_text("Copying", exact=True).click()
    expect(chart(page).get_by_text(f"{SINK}: mean loss 12.1 nats")).to_be_visible()
    settle(page)
    visit(other_page, f"{server}/model?{query(page)}")
    for each in (page, other_page):
        names = chart(each).locator(".annotation-text").all_text_contents()
        assert [name.partition(": mean loss")[0] for name in names] == ["Original model", WINDOW, SINK]


def test_a_teacher_adds_a_sink_runs_the_copy_test_and_stops_it(page, server):
    visit(page, f"{server}/model?m_words=local~window~64", until="2.18")
    settle(page)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name=SINK, exact=True).click()
    expect(page.get_by_role("row", name="1.18")).to_be_visible()
    page.keyboard.press("Escape")
    settle(page)
    page.get_by_text("Copying", exact=True).click()
    expect(chart(page).get_by_text("mean loss").first).to_be_visible()
    expect(
        page.get_by_text("With both variants, the model can hardly copy a token from 95 tokens back.")
    ).to_be_visible()
    settle(page)
    visit(page, f"{server}/model?m_view=continuation&m_text=story&m_live=1", until="of 6")
    press(page, "Stop")
    expect(page.get_by_text(re.compile(r"Stopped after \d of 6 results"))).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    settle(page)
