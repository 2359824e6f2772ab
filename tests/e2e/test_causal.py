"""Browser tests of the Causal page: its views, such as leaks of later tokens and the animated state, and its links."""

import re

import pytest
from browser import NAMED, SIDEWAYS, board, chart, press, query, rows, saved, settle, switch, visit, words
from playwright.sync_api import expect

import attention_core as ac
from attention_core.analysis.matrix.influence import influence

LINK = "?input=synthetic&n=24&d=8&heads=2&head=1&variants=softmax&variants=nystrom~landmarks~4"
CHAPTERS = ("Overview", "State", "Generation", "Forgetting", "Future leaks", "Training")


def download_file(page, name):
    page.get_by_text("Export", exact=True).click()
    return saved(page, name)


def test_a_leak_is_shown_and_opened_by_a_click_on_the_map(page, server):
    visit(page, f"{server}/causal{LINK}&c_token=6")
    expect(page.get_by_text("Only Nyström with 4 landmarks leaks: if token 6")).to_be_visible()
    expect(page.get_by_text("can leak: each query uses all landmarks")).to_be_visible()
    page.get_by_text("All replaced tokens", exact=True).click()
    leaks = board(page, "causal.leaks")
    leaks.locator(".grid").focus()
    for _ in range(16):
        page.keyboard.press("ArrowDown")
    expect(leaks).to_have_attribute("data-cell", re.compile(r"^\d\d,0$"))
    expect(leaks.locator(".live")).to_have_text(re.compile(r"Nyström · landmarks 4 \d"))  # no minus sign
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"Only Nyström with 4 landmarks leaks: if token \d\d"))).to_be_visible()
    settle(page)
    [token] = [int(part.removeprefix("c_token=")) for part in words(page) if part.startswith("c_token=")]
    assert token > 6
    expect(page.get_by_text(re.compile(f"token {token} .* is replaced", re.IGNORECASE))).to_be_visible()

    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, d=8, heads=2))
    expected = influence(qkv, ac.get("nystrom", landmarks=4), head=1).moved
    [row] = [
        r
        for r in rows(download_file(page, "Maps (CSV)"))
        if (r["variant"], r["t"], r["i"]) == ("nystrom~landmarks~4", "20", "3")
    ]
    assert float(row["change"]) == pytest.approx(float(expected[20, 3]))


def test_the_state_plays_stops_and_is_in_the_link(page, server, phone):
    # With 400 tokens, the animation lasts longer than the test.
    visit(page, f"{server}/causal{LINK.replace('n=24', 'n=400')}&c_view=state&c_at=2")
    expect(page.get_by_text("has read 3 tokens")).to_be_visible()
    page.get_by_role("combobox", name="Variant").click()
    page.get_by_role("option", name="Retention").click()
    settle(page)
    assert "c_state=retention" in query(page)
    press(page, "Play")
    expect(page.get_by_text(re.compile(r"has read (?!3 )\d+ tokens"))).to_be_visible()
    press(page, "Stop")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settle(page)
    seen = page.get_by_text(re.compile("has read .* token")).inner_text()
    page.wait_for_timeout(1500)
    assert page.get_by_text(re.compile("has read .* token")).inner_text() == seen, "a stopped play stands still"
    place = int(re.search(r"has read (\d+) tokens", seen).group(1)) - 1
    assert f"c_at={place}" in words(page)
    page.get_by_role("slider").last.press("ArrowRight")
    expect(page.get_by_text(f"has read {place + 2} tokens")).to_be_visible()
    settle(page)
    assert f"c_at={place + 1}" in words(page), "the slider runs only its part of the page, but the link knows it"

    page.get_by_role("slider").last.press("End")
    page.get_by_role("slider").last.press("ArrowLeft")
    expect(page.get_by_text("has read 399 tokens")).to_be_visible()
    settle(page)
    press(page, "Play")
    expect(page.get_by_text("has read 400 tokens")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settle(page)
    assert "c_at=399" in words(page), "a play that has ended says so and keeps its place"
    press(page, "Play")
    expect(page.get_by_text(re.compile(r"has read (?!400 )\d+ tokens"))).to_be_visible()
    press(page, "Stop")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settle(page)
    place = (
        int(
            re.search(r"has read (\d+) tokens", page.get_by_text(re.compile("has read .* token")).inner_text()).group(1)
        )
        - 2
    )

    visit(phone, f"{server}/causal?{query(page)}")
    expect(phone.get_by_text(f"has read {place + 2} tokens")).to_be_visible()
    assert words(phone) == words(page)
    assert phone.evaluate(SIDEWAYS) <= 390


def test_a_decay_changes_which_tokens_survive(page, server):
    visit(page, f"{server}/causal{LINK}&c_view=fading")
    expect(page.get_by_text("In rows 12 to 23, token 10")).to_be_visible()
    names = page.locator(".js-plotly-plot").first.locator(NAMED)
    names_of = ["Softmax", "Linear", "Retention · γ 0.8", "Retention · γ 0.95", "equal weights"]
    # The marker of its line precedes each name, and a long name has line breaks.
    broken = [r"\s*".join(map(re.escape, name.split())) for name in names_of]
    expect(names).to_have_text([re.compile(rf"^(\S+\s+)?{name}$") for name in broken])
    page.get_by_role("button", name="Curves").click()
    page.get_by_text("0.5", exact=True).first.click()
    expect(names).to_have_count(6)
    settle(page)
    assert {"c_decays=0.5", "c_decays=0.8", "c_decays=0.95"} <= words(page)
    assert download_file(page, "Numbers (CSV)").stat().st_size > 1000


def test_every_view_opens_one_after_the_other(page, server):
    visit(page, f"{server}/causal{LINK}")
    for name in CHAPTERS:
        switch(page, name)
        settle(page)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_test_id("stAlert")).to_have_count(0)
    expect(page.get_by_text("Causal", exact=True).locator("visible=true")).to_have_count(0)


def test_a_phone_shows_the_whole_name_of_the_crossing(phone, server):
    visit(phone, f"{server}/causal")
    label = chart(phone).locator(".annotation text", has_text=re.compile(r"^from \d+ tokens on, softmax"))
    expect(label).to_be_visible()
    place = label.bounding_box()
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= phone.viewport_size["width"]
