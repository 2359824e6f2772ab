"""The Masks page in Chromium: patterns by primitive, a composed stack, a front that plays, hashed order, files."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from conftest import query, settle, visit
from PIL import Image
from playwright.sync_api import expect

SMALL = "?input=synthetic&n=40&heads=2&head=0&variants=softmax&variants=local~window~4&variants=bigbird~window~4"


def masks(page, server, link=SMALL):
    visit(page, f"{server}/masks{link}")
    board(page).wait_for(timeout=30_000)
    settle(page)


def board(page, key="masks.board"):
    return page.locator(f'[data-board="{key}"][data-paints]')


def values(page, key="masks.board"):
    return page.locator(f'[data-board="{key}"] .value').all_inner_texts()


def test_the_whole_path(page, server):
    masks(page, server)
    legend = page.locator('[data-board="masks.board"] .legend')
    expect(legend).to_have_attribute("aria-label", "Allowed by: window, global token, random key, may not look")
    page.locator('[data-board="masks.board"] .grid').focus()
    page.keyboard.press("ArrowDown")
    expect(board(page)).to_have_attribute("data-cell", "0,0")
    assert values(page) == ["window", "window + global token"]
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    expect(board(page)).to_have_attribute("data-cell", "0,8")
    assert values(page) == ["may not look", "global token"]

    page.get_by_text("Local, over and over", exact=True).click()
    settle(page)
    expect(page.get_by_text("It takes 10 to connect all")).to_be_visible()
    assert {"stack=local", "stack_depth=6"} <= set(query(page).split("&"))
    page.get_by_role("button", name="Add a layer").click()
    page.get_by_role("button", name=re.compile("^Atrous")).click()
    settle(page)
    expect(page.get_by_text("It takes 3 to connect all")).to_be_visible()
    assert "stack=" not in query(page), "local then atrous is the default"

    figure = page.locator(".js-plotly-plot").last
    figure.scroll_into_view_if_needed()
    drawn = "(plot) => plot.calcdata[0][0].z.filter((row) => Array.from(row).some(Number.isFinite)).length"
    assert figure.evaluate(drawn) == 7
    figure.get_by_text("Play").click()
    page.wait_for_function(f"(plot) => ({drawn})(plot) < 4", arg=figure.element_handle(), timeout=5_000)
    page.wait_for_function(f"(plot) => ({drawn})(plot) === 7", arg=figure.element_handle(), timeout=15_000)


def test_a_click_takes_the_token_whose_front_is_followed(page, server):
    masks(page, server)
    page.locator('[data-board="reach.board"] .grid').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    settle(page)
    expect(page.get_by_text("something of “t10”")).to_be_visible(timeout=10_000)
    assert "front=10" in query(page)
    expect(board(page)).to_have_attribute("data-pinned", "10")


def test_a_link_opens_the_same_page_elsewhere(page, server, chromium):
    link = SMALL + "&causal=1&stack=bigbird&stack_depth=3&front=7&front_way=hears&masks_part=reach"
    masks(page, server, link)
    other = chromium.new_context(viewport={"width": 1400, "height": 1000}).new_page()
    masks(other, server, "?" + query(page))
    assert sorted(query(other).split("&")) == sorted(query(page).split("&"))
    drawn = "(canvas) => canvas.toDataURL()"
    for key, panel in (("masks.board", "bigbird"), ("reach.board", "reach")):
        spot = f'[data-board="{key}"] [data-panel="{panel}"] canvas'
        assert page.locator(spot).first.evaluate(drawn) == other.locator(spot).first.evaluate(drawn)
    other.context.close()


def test_hashed_order_shows_its_chunks(page, server):
    masks(page, server, "?input=synthetic&n=40&variants=softmax&variants=reformer&masks_part=order")
    expect(board(page, "masks.order")).to_have_count(1)
    plot = page.locator('[data-board="masks.order"] .plot canvas').first
    before = plot.evaluate("(canvas) => canvas.toDataURL()")
    page.get_by_text("original", exact=True).click()
    settle(page)
    assert plot.evaluate("(canvas) => canvas.toDataURL()") != before
    assert "hash_order=original" in query(page)


def test_colours_follow_the_theme_and_the_files_hold_the_masks(page, server, tmp_path):
    masks(page, server, SMALL + "&masks_part=download")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Masks (NPZ)").click()
    waiting.value.save_as(tmp_path / "masks.npz")
    with np.load(tmp_path / "masks.npz", allow_pickle=False) as arrays:
        assert arrays["local"].sum() == 40 * 9 - 4 * 5
        parts = arrays["bigbird.window"] | arrays["bigbird.global"] | arrays["bigbird.random"]
        assert np.array_equal(parts, arrays["bigbird"])
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Numbers (CSV)").click()
    waiting.value.save_as(tmp_path / "masks.csv")
    lines = (tmp_path / "masks.csv").read_text("utf-8-sig").splitlines()
    assert [line.split(",")[0] for line in lines] == ["variant", "Softmax", "Local · window 4", "BigBird · window 4"]

    blue, magenta = (0x44, 0x77, 0xAA), (0xAA, 0x33, 0x77)
    with page.expect_download() as waiting:
        page.locator('[data-board="masks.board"] [data-act="png"]').click()
    image = Image.open(Path(waiting.value.path())).convert("RGB")
    seen = {colour for _count, colour in image.getcolors(maxcolors=2**24)}
    assert {blue, magenta} <= seen
    with page.expect_download() as waiting:
        page.locator('[data-board="masks.board"] [data-act="svg"]').click()
    svg = ElementTree.parse(waiting.value.path())
    words = {e.text for e in svg.iter() if e.tag.endswith("text")}
    assert {"window", "global token", "random key", "may not look"} <= words
    assert any(e.get("fill") == "#4477aa" for e in svg.iter())

    shown = Image.open(io.BytesIO(page.locator('[data-panel="local"] .plot').screenshot())).convert("RGB")
    assert blue in {colour for _count, colour in shown.getcolors(maxcolors=2**24)}
    paints = board(page).get_attribute("data-paints")
    page.emulate_media(color_scheme="dark")
    expect(board(page)).not_to_have_attribute("data-paints", paints)
    page.wait_for_timeout(300)
    dark = Image.open(io.BytesIO(page.locator('[data-panel="local"] .plot').screenshot())).convert("RGB")
    seen = {colour for _count, colour in dark.getcolors(maxcolors=2**24)}
    assert (0x5B, 0x9B, 0xD8) in seen
    assert blue not in seen


def test_a_phone_shows_everything_without_sideways_scrolling(server, chromium):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    phone = context.new_page()
    masks(phone, server)
    wide = phone.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollWidth")
    legend = phone.locator('[data-board="masks.board"] .legend').bounding_box()
    context.close()
    assert wide <= 390
    assert legend["x"] + legend["width"] <= 390
