"""The app as a visitor uses it, in Chromium: the whole path over the Matrices page, and the way in from Home."""

import io
import re

import numpy as np
import pytest
from browser import SIDEWAYS, arrays, board, cell, drawn, query, rows, saved, settle, switch, visit, words
from browser import point_at as point_at_plot
from playwright.sync_api import expect

import attention_core as ac
from app.visit import default_variants

SMALL = "?input=synthetic&n=20&heads=2"


def matrices(page, server, link=""):
    visit(page, f"{server}/matrices{link}")
    board(page).wait_for(timeout=30_000)
    settle(page)


def panels(page):
    return board(page).locator("figure")


def paints(page):
    return int(board(page).get_attribute("data-paints"))


def point_at(page, panel, across, down):
    point_at_plot(page.locator(f'[data-panel="{panel}"] .plot'), across, down)


def chip(page, name):
    return page.get_by_role("button", name=re.compile(rf"^{name}"))


def test_home_leads_to_a_comparison(page, server):
    visit(page, server)
    expect(page.get_by_text("What can be compared")).to_be_visible()
    expect(page.locator("img").nth(len(ac.all_variants()) - 1)).to_be_attached()  # they come one by one
    card = page.locator('[data-testid="stVerticalBlock"]').filter(has_text="Nyström").last
    card.get_by_role("link", name="Compare it with softmax").click()
    page.wait_for_url("**/matrices*")
    settle(page)
    expect(panels(page)).to_have_count(2)
    assert "nystrom" in query(page)


def test_it_opens_on_a_real_paragraph_with_eight_variants(page, server):
    matrices(page, server)
    expect(panels(page)).to_have_count(len(default_variants()))
    expect(page.get_by_text("12 heads of 32")).to_be_visible()
    assert query(page) == ""


def test_a_number_under_the_pointer_is_the_weight_of_the_core(page, server):
    matrices(page, server, SMALL + "&head=1")
    point_at(page, "nystrom", 0.5, 0.5)
    row, col = cell(board(page))
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=20, heads=2))
    for attention in default_variants():
        true = float(attention.weights(qkv.q, qkv.k)[1, row, col])
        shown = page.locator(f'[data-panel="{attention.key}"] .value').inner_text().replace("\N{MINUS SIGN}", "-")
        if shown != "masked":
            assert float(shown) == pytest.approx(true, rel=6e-3, abs=1e-9)


def test_typing_another_text_changes_tokens_and_link(page, server):
    matrices(page, server)
    box = page.get_by_label("Your text")
    box.fill("one two three four")
    box.press("Control+Enter")
    expect(page.get_by_text("6 tokens")).to_be_visible(timeout=20_000)
    settle(page)
    assert "text=" in query(page)


def test_picking_a_head_by_its_picture(page, server):
    matrices(page, server)
    board = page.locator(".board.thumbnails canvas").first
    board.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        board.press(key)
    page.wait_for_url(re.compile("layer="))
    settle(page)
    assert {"layer=3", "head=4"} <= words(page)


def test_a_knob_repaints_its_panel_and_enters_the_link(page, server):
    matrices(page, server, SMALL)
    before = paints(page)
    chip(page, "Local").click()
    slider = page.get_by_role("slider", name=re.compile("Window"))
    slider.press("ArrowLeft")
    page.wait_for_url(re.compile("local(~|%7E)window"))
    settle(page)
    expect(chip(page, "Local")).not_to_contain_text("window 16")
    assert paints(page) > before


def test_causal_leaves_out_what_cannot_be_and_says_why(page, server):
    matrices(page, server, SMALL)
    page.get_by_text("Causal", exact=True).click()
    expect(page.get_by_text("Nyström cannot be causal", exact=False).first).to_be_visible()
    expect(panels(page)).to_have_count(7)
    expect(chip(page, "Nyström")).to_be_visible()


def test_a_click_pins_a_row_and_shows_its_bars(page, server):
    matrices(page, server, SMALL)
    point_at(page, "softmax", 0.25, 0.4)
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".js-plotly-plot")).to_be_visible(timeout=10_000)
    settle(page)
    row = re.search(r"row=(\d+)", query(page))[1]
    expect(board(page)).to_have_attribute("data-pinned", row)


def test_a_link_opens_the_same_state_in_another_browser(page, server, elsewhere):
    link = SMALL + "&variants=softmax&variants=local~window~3&causal=1&row=4&tone=log&view=difference"
    matrices(page, server, link)
    expect(chip(page, "Local · window 3")).to_be_visible()
    switch(page, "weights")
    matrices(elsewhere, server, "?" + query(page))
    expect(elsewhere.get_by_text("20 tokens")).to_be_visible()
    expect(chip(elsewhere, "Local · window 3")).to_be_visible()
    assert words(elsewhere) == words(page)
    assert "view=" not in query(elsewhere)
    here, there = (drawn(each.locator('[data-panel="local"] canvas').first) for each in (page, elsewhere))
    assert here == there


def test_the_input_stays_when_the_page_changes(page, server):
    matrices(page, server, SMALL + "&causal=1")
    page.get_by_role("link", name="Home").first.click()
    expect(page.get_by_text("What can be compared")).to_be_visible()
    settle(page)
    page.get_by_test_id("stMain").get_by_role("link", name="Matrices").click()
    expect(page.get_by_text("20 tokens")).to_be_visible(timeout=20_000)
    settle(page)
    assert {"input=synthetic", "n=20", "causal=1"} <= words(page)


def test_a_hostile_link_falls_back_with_a_notice(page, server):
    matrices(page, server, "?layer=many&variants=nystrm&head=%3Cscript%3E&x%3Cimg%20src%3Dx%3E=1")
    expect(page.get_by_text("The link carried values that do not fit")).to_be_visible()
    expect(panels(page)).to_have_count(8)


@pytest.mark.parametrize("text", ["   ", "\u0007\u0000"])
def test_blank_text_gets_a_sentence(page, server, text):
    matrices(page, server)
    box = page.get_by_label("Your text")
    box.fill(text)
    box.press("Control+Enter")
    expect(page.get_by_test_id("stAlert").first).to_be_visible(timeout=10_000)
    assert box.input_value() == text


def test_hostile_tokens_stay_text(page, server):
    matrices(page, server)
    box = page.get_by_label("Your text")
    box.fill("<img src=x onerror=window.hit=1> **bold** $x$ :red[y] <b>z</b>")
    box.press("Control+Enter")
    settle(page)
    point_at(page, "softmax", 0.25, 0.3)
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".js-plotly-plot")).to_be_visible(timeout=10_000)
    settle(page)
    assert page.evaluate("window.hit") is None


def test_an_upload_is_drawn_and_a_bad_one_gets_a_sentence(page, server):
    matrices(page, server, "?variants=softmax")
    page.get_by_text("Upload", exact=True).click()
    expect(page.get_by_text("Upload an .npz file").first).to_be_visible(timeout=10_000)
    drop = page.locator('input[type="file"]')
    drop.set_input_files({"name": "mine.npz", "mimeType": "application/zip", "buffer": ac.inputs.example_npz()})
    expect(panels(page)).to_have_count(1, timeout=20_000)
    out = io.BytesIO()
    np.savez(out, q=np.full((1, 4, 2), np.nan), k=np.ones((1, 4, 2)), v=np.ones((1, 4, 2)))
    drop.set_input_files({"name": "bad.npz", "mimeType": "application/zip", "buffer": out.getvalue()})
    expect(page.get_by_test_id("stAlert").first).to_be_visible(timeout=20_000)


def test_the_numbers_can_be_taken_away(page, server):
    matrices(page, server, SMALL + "&variants=softmax&variants=linear&more=download")
    found = arrays(saved(page, "Matrices (NPZ)"))
    assert found["softmax"].shape == (20, 20)
    assert np.allclose(found["softmax"].sum(-1), 1, atol=1e-5)
    assert len(rows(saved(page, "Matrices (CSV)"))) == 2 * 20 * 20
    assert saved(page, page.locator('[data-act="png"]')).read_bytes().startswith(b"\x89PNG")


def test_a_phone_shows_everything_without_sideways_scrolling(phone, server):
    matrices(phone, server, SMALL + "&row=3")
    assert phone.evaluate(SIDEWAYS) <= 390


def test_nothing_is_asked_of_another_host(page, server):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    matrices(page, server, "?row=3&more=explain")
    assert not [url for url in asked if not url.startswith((server, "data:", "blob:"))]
