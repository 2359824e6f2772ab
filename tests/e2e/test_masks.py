"""Browser tests of the Masks page: patterns of masks, stacks of layers and their animation, tokens sorted by a hash."""

import re
from xml.etree import ElementTree

import numpy as np
from browser import (
    FORGET,
    arrays,
    board,
    colours,
    darken,
    drawn,
    open_input,
    picture,
    query,
    rows,
    saved,
    settle,
    switch,
    values,
    visit,
    words,
)
from PIL import Image
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

SMALL = "?input=synthetic&n=40&heads=2&head=0&variants=softmax&variants=local~window~4&variants=bigbird~window~4"
MASKS = "masks.board"
HOLD = """
const listen = WebSocket.prototype.addEventListener;
WebSocket.prototype.addEventListener = function (type, act, ...options) {
    const held = (event) => (window.held ? window.held.push(() => act.call(this, event)) : act.call(this, event));
    return listen.call(this, type, type === "message" ? held : act, ...options);
};
"""
"""JavaScript that holds all messages from the server while ``window.held`` is an array; for ``add_init_script``."""


def masks(page, server, link=SMALL):
    visit(page, f"{server}/masks{link}")
    board(page, MASKS).wait_for()
    settle(page)


def test_every_part_of_the_page_works(page, server):
    masks(page, server)
    legend = page.locator('[data-board="masks.board"] .legend')
    allowed = "Allowed in one layer by: window, global token, random key, not allowed"
    expected = f"{allowed}; First connected by: layer 1, .*not connected"
    expect(legend).to_have_attribute("aria-label", re.compile(f"^{expected}$"))
    board(page, MASKS).locator(".grid").focus()
    page.keyboard.press("ArrowDown")
    expect(board(page, MASKS)).to_have_attribute("data-cell", "0,0")
    assert values(board(page, MASKS))[:2] == ["window", "window + global token"]
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    expect(board(page, MASKS)).to_have_attribute("data-cell", "0,8")
    assert values(board(page, MASKS))[:2] == ["not allowed", "global token"]

    page.get_by_role("button", name="Edit the stack").click()
    page.get_by_role("button", name="Add a layer").click()
    switch(page, "Local × 6")
    expect(page.get_by_text("All tokens are connected after 10 layers")).to_be_visible()
    assert {"stack=local", "stack_depth=6"} <= words(page)
    page.get_by_role("button", name=re.compile("^Atrous")).last.click()
    settle(page)
    expect(page.get_by_text("connects all tokens in 3 layers")).to_be_visible()
    assert "stack=" not in query(page), "local then atrous is the default"

    figure = page.locator(".js-plotly-plot").last
    figure.scroll_into_view_if_needed()
    rows_drawn = "(plot) => plot.calcdata[0][0].z.filter((row) => Array.from(row).some(Number.isFinite)).length"
    assert figure.evaluate(rows_drawn) == 4, "three layers connect all tokens"


def test_a_page_without_a_sidebar_reserves_no_space_for_one(newly_opened, server):
    ends = []

    def received(raw):
        ends.append(isinstance(raw, bytes) and ForwardMsg.FromString(raw).WhichOneof("type") == "script_finished")

    newly_opened.on("websocket", lambda socket: socket.on("framereceived", received))
    newly_opened.add_init_script(FORGET)
    newly_opened.add_init_script(HOLD)
    masks(newly_opened, server)
    open_input(newly_opened)
    settle(newly_opened)
    ends.clear()
    newly_opened.evaluate("window.held = []")
    newly_opened.get_by_role("link", name="Home").click()
    while not any(ends):
        newly_opened.wait_for_timeout(50)
    # All messages of the run arrive within one task, so Streamlit keeps the empty sidebar.
    newly_opened.evaluate("() => { const messages = window.held; window.held = null; messages.forEach((go) => go()); }")
    expect(newly_opened.get_by_role("heading", level=1)).to_contain_text("Attention Lab")
    settle(newly_opened)
    expect(newly_opened.get_by_test_id("stSidebar")).to_be_hidden()
    assert newly_opened.get_by_test_id("stMain").bounding_box()["x"] == 0
    newly_opened.go_back()
    expect(newly_opened.get_by_test_id("stSidebar")).to_be_visible()


def test_the_animation_of_layers_runs_in_the_browser_without_layout_shift(page, server):
    masks(page, server, f"{SMALL}&stack=local&stack_depth=1")
    page.evaluate(
        """() => {
            window.moved = 0;
            const add = (list) => list.getEntries().forEach((entry) => (window.moved += entry.value));
            new PerformanceObserver(add).observe({ type: "layout-shift" });
        }"""
    )
    panel = board(page, MASKS).locator('[data-panel="reach"]')
    first, link = drawn(panel.locator("canvas").first), query(page)
    play, slider = page.locator('[data-act="play"]'), page.get_by_role("slider", name="Stack: Local: layers")
    play.click()
    expect(play).to_have_text(re.compile("Stop"))
    expect(panel.locator(".caption")).to_have_text(re.compile("after 3 layers\\b"))
    expect(slider).to_have_attribute("aria-valuetext", "3")
    assert query(page) == link, "the server has not been asked"
    assert drawn(panel.locator("canvas").first) != first
    play.click()
    page.wait_for_url(re.compile("stack_depth=[3-7]"))
    settle(page)
    expect(play).to_have_text(re.compile("Play"))
    play.click()
    page.wait_for_url(re.compile("stack_depth=8"))
    settle(page)
    expect(panel.locator(".caption")).to_have_text(re.compile("after 8 layers\\b"))
    assert page.evaluate("window.moved") < 0.01


def test_the_layers_of_the_stack_are_set_on_its_panel_without_a_request_until_the_release(page, server):
    masks(page, server, f"{SMALL}&stack=local&stack_depth=1")
    panel, slider = (
        board(page, MASKS).locator('[data-panel="reach"]'),
        page.get_by_role("slider", name="Stack: Local: layers"),
    )
    first, link, box = drawn(panel.locator("canvas").first), query(page), slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.05 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=4)
    layers = slider.get_attribute("aria-valuetext")
    assert 3 <= int(layers) <= 6
    expect(panel.locator(".caption")).to_have_text(re.compile(rf"after {layers} layers\b"))
    assert drawn(panel.locator("canvas").first) != first
    assert query(page) == link
    page.mouse.up()
    page.wait_for_url(re.compile(f"stack_depth={layers}"))
    settle(page)
    expect(page.locator("[class*=st-key-masks-headline]")).to_contain_text(
        f"After {layers} layers, the stack Local connects"
    )
    page.get_by_role("slider", name="Local: window").first.press("ArrowRight")
    page.wait_for_url("**local~window~5**")


def test_the_board_of_the_opening_screen_is_entirely_visible_on_a_projector(newly_opened, server):
    page = newly_opened
    page.add_init_script(FORGET)
    page.set_viewport_size({"width": 1280, "height": 720})
    masks(page, server, "")
    boxes = [board(page, MASKS).locator("figure").nth(i).bounding_box() for i in range(4)]
    assert len({box["y"] for box in boxes}) == 1
    assert max(box["y"] + box["height"] for box in boxes) <= 720


def test_a_click_selects_the_token_whose_front_is_shown(page, server):
    masks(page, server)
    board(page, MASKS).locator(".grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    settle(page)
    expect(page.get_by_text("“t10” can read")).to_be_visible()
    assert "front=10" in query(page)
    expect(board(page, MASKS)).to_have_attribute("data-pinned", "10")


def test_hashed_order_shows_its_chunks(page, server):
    masks(page, server, "?input=synthetic&n=40&variants=softmax&variants=reformer&masks_part=order")
    expect(board(page, "masks.order")).to_have_count(1)
    plot = board(page, "masks.order").locator(".plot canvas").first
    before = drawn(plot)
    switch(page, "Original")
    assert drawn(plot) != before
    assert "hash_order=original" in query(page)


def test_colours_follow_the_theme_and_the_files_hold_the_masks(page, server):
    masks(page, server, SMALL + "&masks_part=download")
    found = arrays(saved(page, "Masks (NPZ)"))
    assert found["local"].sum() == 40 * 9 - 4 * 5
    parts = found["bigbird.window"] | found["bigbird.global"] | found["bigbird.random"]
    assert np.array_equal(parts, found["bigbird"])
    table = rows(saved(page, "Numbers (CSV)"))
    assert next(iter(table[0])) == "variant"
    assert [row["variant"] for row in table] == ["Softmax", "Local · window 4", "BigBird · window 4"]

    blue, magenta = (0x44, 0x77, 0xAA), (0xAA, 0x33, 0x77)
    shown = board(page, MASKS)
    assert {blue, magenta} <= colours(Image.open(saved(page, shown.locator('[data-act="png"]'))).convert("RGB"))
    svg = ElementTree.parse(saved(page, shown.locator('[data-act="svg"]')))
    texts = {e.text for e in svg.iter() if e.tag.endswith("text")}
    assert {"window", "global token", "random key", "not allowed"} <= texts
    assert any(e.get("fill") == "#4477aa" for e in svg.iter())

    plot = page.locator('[data-panel="local"] .plot')
    assert blue in colours(picture(plot))
    darken(page, shown)
    seen = colours(picture(plot))
    assert (0x5B, 0x9B, 0xD8) in seen
    assert blue not in seen


def test_a_phone_names_the_panels_that_are_reached_by_swiping(phone, server):
    masks(phone, server)
    expect(phone.get_by_text(re.compile("^Swipe for BigBird · Stack"))).to_be_visible()


def test_a_phone_shows_the_whole_legend(phone, server):
    masks(phone, server)
    legend = phone.locator('[data-board="masks.board"] .legend').bounding_box()
    assert legend["x"] + legend["width"] <= 390
