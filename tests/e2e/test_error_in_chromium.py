"""Browser tests of the Error page: a link, all views, the points of its chart, and a downloaded file."""

import re

import pytest
from browser import chart, legend, press, query, rows, saved, settle, visit, words
from playwright.sync_api import expect

import attention_core as ac

LINK = "?input=synthetic&n=40&heads=2&head=0&variants=softmax&variants=local&variants=nystrom&variants=reformer"

THIRD = """(plot, name) => {
    const { x, y, meta } = plot.data.find((trace) => trace.name === name);
    const { xaxis, yaxis } = plot._fullLayout;
    const { left, top } = plot.querySelector(".nsewdrag").getBoundingClientRect();
    return [[left + xaxis.d2p(x[2]), top + yaxis.d2p(y[2])], meta.links[2]];
}"""
"""JavaScript that returns the position of a line's third point, and the variant that the point represents."""


def test_a_link_leads_through_every_view_to_a_file(page, server):
    visit(page, f"{server}/error{LINK}")
    expect(page.get_by_text(re.compile("at least halves the error of equal weights"))).to_be_visible()
    assert {
        "Equal weights on all keys",
        "Equal weights, compared with shared-QK softmax",
        "Local · window",
        "Nyström · landmarks",
    } <= set(legend(page))
    page.get_by_text("How to read the chart", exact=True).click()
    expect(page.get_by_text("Reformer uses the queries also as keys")).to_be_visible()

    page.get_by_text("By cost", exact=True).first.click()
    expect(chart(page).get_by_text("half of softmax's cost")).to_be_visible()
    settle(page)
    assert "against=cost" in query(page)
    press(page, "Settings")
    page.get_by_text("Measured time").click()
    page.keyboard.press("Escape")
    press(page, "Measure times")
    expect(chart(page).get_by_text("forward time relative to softmax")).to_be_visible()
    settle(page)

    found = rows(saved(page, "Numbers (CSV)"))
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=40, heads=2))
    exact = ac.get("softmax").weights(qkv.q, qkv.k)[0].double()
    own = ac.get("nystrom", landmarks=8).weights(qkv.q, qkv.k)[0].double()
    [row] = [r for r in found if r["word"] == "nystrom~landmarks~8"]
    assert float(row["matrix"]) == pytest.approx(float((own - exact).norm() / exact.norm()), abs=1e-5)
    assert float(row["milliseconds"]) > 0

    page.get_by_text("By length", exact=True).first.click()
    expect(chart(page).get_by_text("tokens n (log scale)", exact=True)).to_be_visible(timeout=40_000)
    settle(page)
    assert "Local · window 16" in legend(page)
    assert "against=length" in query(page)


def test_a_point_shows_its_numbers_highlights_its_line_and_links_to_its_matrix(page, server):
    visit(page, f"{server}/error{LINK}&against=cost")
    expect(chart(page).get_by_text("half of softmax's cost")).to_be_visible()
    place, word = chart(page).evaluate(THIRD, "Nyström")
    page.mouse.move(*place)
    lit = chart(page).locator(".trace.lit")
    expect(lit).to_have_count(1)  # This line has no band.
    expect(chart(page).get_by_text("Click to open this matrix")).to_be_visible()
    page.mouse.click(*place)
    expect(page.get_by_text("What does each variant attend to?").first).to_be_visible()
    settle(page)
    assert {"variants=softmax", f"variants={word}"} <= words(page)


def test_a_phone_shows_the_whole_legend_the_label_of_the_mark_and_the_save_button(phone, server):
    visit(phone, f"{server}/error{LINK}&against=cost")
    figure = chart(phone)
    expect(figure.locator(".legend .traces")).to_have_count(5)
    frame = phone.get_by_test_id("stElementContainer").filter(has=figure).last.bounding_box()
    for part in (figure.locator(".legend .traces").last, figure.get_by_text("half of softmax's cost")):
        place = part.bounding_box()
        assert frame["x"] <= place["x"]
        assert place["x"] + place["width"] <= frame["x"] + frame["width"]
        assert place["y"] + place["height"] <= frame["y"] + frame["height"]
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".modebar-btn")).to_be_in_viewport(ratio=1)
