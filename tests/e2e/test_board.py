"""Browser tests of the board, which draws matrices side by side, and of the small pictures of a model's heads."""

import os
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import board, cell, darken, on, picture, point_at, saved, settle, values, visit
from conftest import ROOT, free_port, start
from PIL import Image
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def boards(tmp_path_factory):
    port = free_port()
    script = Path(__file__).with_name("board_app.py")
    imports = os.environ | {"PYTHONPATH": str(ROOT)}  # The installed package has no top-level module ``app``.
    folder = tmp_path_factory.mktemp("boards")
    process = start(script, port, folder, cwd=ROOT / "app", env=imports)  # This folder has Streamlit's settings.
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


def open_board(page, boards, query=""):
    visit(page, f"{boards}/?{query}")
    found = board(page)
    found.wait_for()
    return found


def weight(panel, row, col, version=0):
    return ((row * 31 + col * 17 + 7 * panel + version) % 97 + 1) / 1000


def plot(page, panel):
    return page.locator(".plot").nth(panel)


def test_hovering_shows_each_panels_own_number(page, boards):
    shown = open_board(page, boards, "count=3")
    for across, down in ((0.3, 0.4), (0.7, 0.9), (0.995, 0.995)):
        point_at(plot(page, 1), across, down)
        expect(page.locator(".tip")).to_be_visible()
        row, col = cell(shown)
        assert values(page) == [f"{weight(i, row, col):#.3g}" for i in range(3)]
        expect(page.locator(".where")).to_have_text(f"query {row} “t{row}” → key {col} “t{col}”")
        expect(page.locator(".what")).to_have_text(f"weight {weight(1, row, col):#.3g}")
    assert (row, col) == (11, 11), "the last corner of the drawing is the last cell"
    expect(page.get_by_role("status").first).to_contain_text(f"Panel 2 {weight(2, 11, 11):#.3g}")
    page.mouse.move(5, 5)
    expect(page.locator(".tip")).to_be_hidden()
    assert values(page) == [""] * 3


@pytest.mark.parametrize("n", [512, 310])
def test_an_isolated_peak_is_drawn_in_place_and_read_exactly(page, boards, n):
    shown = open_board(page, boards, f"case=peak&n={n}&count=4")
    image = picture(plot(page, 1))
    x, y = max(
        ((x, y) for x in range(image.width) for y in range(image.height)),
        key=lambda p: image.getpixel(p)[2] - image.getpixel(p)[0],
    )
    box = plot(page, 1).bounding_box()
    page.mouse.move(box["x"] + x + 0.5, box["y"] + y + 0.5)
    expect(page.locator(".where")).to_have_text("query 300 “t300” → key 77 “t77”")
    assert cell(shown) == (300, 77)
    assert values(page) == ["0.00100", "1.00", "0.00100", "0.00100"]
    expect(page.locator(".note")).to_contain_text("and shows the cell value that is largest in absolute value")


def test_a_click_pins_in_all_panels_and_is_reported_to_python(page, boards):
    shown = open_board(page, boards, "n=40")
    before = [picture(plot(page, i)) for i in range(2)]
    point_at(plot(page, 0), 0.5, 0.6)
    row = cell(shown)[0]
    page.mouse.click(*on(plot(page, 0), 0.5, 0.6))
    expect(page.get_by_text(f"pinned {row}")).to_be_visible()
    settle(page)
    page.mouse.move(5, 5)
    expect(shown).to_have_attribute("data-pinned", str(row))
    expect(page.locator(".tip")).to_be_hidden()
    for i in range(2):
        now = picture(plot(page, i))
        magenta = sum(r > 150 and g < 60 and 60 < b < 150 for r, g, b in now.get_flattened_data())
        assert magenta > now.width, "the row is outlined on both sides"
        assert not any(r > 150 and g < 60 and 60 < b < 150 for r, g, b in before[i].get_flattened_data())
    page.mouse.click(*on(plot(page, 1), 0.2, 0.6))
    expect(page.get_by_text("pinned None")).to_be_visible()
    expect(shown).to_have_attribute("data-pinned", "")


def test_python_can_pin_and_the_pin_survives_new_values(page, boards):
    shown = open_board(page, boards)
    page.get_by_role("button", name="pin 3").click()
    expect(shown).to_have_attribute("data-pinned", "3")
    page.get_by_role("button", name="other values").click()
    settle(page)
    expect(shown).to_have_attribute("data-pinned", "3")


def test_everything_works_from_the_keyboard(page, boards):
    shown = open_board(page, boards, "n=30")
    grid = page.get_by_role("application").first
    expect(grid).to_have_attribute("aria-label", re.compile("arrow keys"))
    grid.focus()
    for keys, place in (
        ("ArrowDown", (0, 0)),
        ("ArrowDown ArrowRight ArrowRight", (1, 2)),
        ("PageDown", (11, 2)),
        ("End", (11, 29)),
        ("PageDown PageDown", (29, 29)),
        ("ArrowDown ArrowRight", (29, 29)),
        ("Home ArrowUp ArrowLeft", (28, 0)),
        ("PageUp", (18, 0)),
    ):
        for key in keys.split():
            page.keyboard.press(key)
        expect(shown).to_have_attribute("data-cell", f"{place[0]},{place[1]}")
    assert values(page)[0] == f"{weight(0, 18, 0):#.3g}"
    page.keyboard.press("Enter")
    expect(page.get_by_text("pinned 18")).to_be_visible()
    page.keyboard.press("+")
    expect(grid).to_have_class(re.compile("zoomed"))
    page.keyboard.press("0")
    expect(grid).not_to_have_class(re.compile("zoomed"))
    page.keyboard.press("Escape")
    expect(page.get_by_text("pinned None")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_be_hidden()


def test_a_page_that_scrolls_under_a_resting_mouse_keeps_the_cell_that_a_key_chose(page, boards):
    page.set_viewport_size({"width": 1000, "height": 400})
    shown = open_board(page, boards)
    point_at(plot(page, 0), 0.5, 0.5)
    page.get_by_role("application").first.focus()
    page.keyboard.press("Home")
    expect(shown).to_have_attribute("data-cell", re.compile(",0$"))
    chosen = cell(shown)
    scrolled = "const page = document.querySelector('[data-testid=stMain]'); page.scrollTop += {}; [page.scrollTop]"
    assert page.evaluate(scrolled.format(2000)) != [0]
    page.wait_for_timeout(400)
    expect(page.locator(".live").first).to_contain_text(f"query {chosen[0]} “t{chosen[0]}” → key 0")
    assert cell(shown) == chosen
    assert page.evaluate(scrolled.format(-2000)) == [0]
    page.wait_for_timeout(400)
    assert cell(shown) == chosen, "the mouse is on another cell, but did not move"
    point_at(plot(page, 0), 0.7, 0.7)
    expect(shown).not_to_have_attribute("data-cell", f"{chosen[0]},{chosen[1]}")


def test_keys_move_between_matrices_of_any_shape(page, boards):
    shown = open_board(page, boards, "case=narrow")
    page.get_by_role("application").first.focus()
    for key, place, read in (
        ("ArrowDown", (0, 0), [True, True, False]),
        ("End", (0, 11), [True, True, False]),
        ("p", (0, 4), [False, False, True]),  # This key selects the last panel, which has five columns.
        ("ArrowDown", (1, 4), [False, False, True]),
        ("n", (1, 4), [True, True, False]),
    ):
        page.keyboard.press(key)
        expect(shown).to_have_attribute("data-cell", f"{place[0]},{place[1]}")
        for panel, shows in enumerate(read):
            expect(page.locator(".value").nth(panel)).to_have_text(re.compile("." if shows else "^$"))
    expect(page.get_by_role("status").first).to_contain_text(f"Panel 1 {weight(1, 1, 4):#.3g}")


def test_zoom_and_pan_are_linked_and_survive_new_values(page, boards):
    shown = open_board(page, boards, "n=64")
    grid = page.locator(".grid")
    size = grid.bounding_box()
    page.get_by_role("button", name="pin 3").click()
    expect(shown).to_have_attribute("data-pinned", "3")
    point_at(plot(page, 0), 0.8, 0.7)
    here = cell(shown)
    page.mouse.dblclick(*on(plot(page, 0), 0.8, 0.7))
    expect(grid).to_have_class(re.compile("zoomed"))
    page.wait_for_timeout(500)
    point_at(plot(page, 0), 0.8, 0.7)
    assert cell(shown) == here, "the cell zoomed at stays where it was"
    expect(shown).to_have_attribute("data-pinned", "3")  # The double click did not change the pinned row.
    corners = []
    for panel in range(2):
        point_at(plot(page, panel), 0.99, 0.99)
        corners.append(cell(shown))
    assert corners[0] == corners[1]
    before = corners[0]
    page.mouse.down()
    page.mouse.move(*on(plot(page, 1), 0.7, 0.8), steps=4)
    page.mouse.up()
    point_at(plot(page, 0), 0.99, 0.99)
    row, col = cell(shown)
    assert row >= before[0]
    assert col >= before[1]
    page.get_by_role("button", name="other values").click()
    settle(page)
    point_at(plot(page, 0), 0.99, 0.99)
    assert cell(shown) == (row, col)
    assert values(page)[1] == f"{weight(1, row, col, version=1):#.3g}"
    assert grid.bounding_box() == size, "nothing jumps"
    page.get_by_role("button", name="Whole matrix").click()
    expect(grid).not_to_have_class(re.compile("zoomed"))


def test_the_button_zooms_around_the_pinned_row(page, boards):
    shown = open_board(page, boards, "n=64")
    page.get_by_role("button", name="pin 3").click()
    expect(shown).to_have_attribute("data-pinned", "3")
    page.get_by_role("button", name="Zoom in").first.click()
    expect(page.locator(".grid")).to_have_class(re.compile("zoomed"))
    point_at(plot(page, 0), 0.99, 0.99)
    assert cell(shown) == (33, 33), "half of the rows are visible, and row 3 is where it was"


def test_a_plain_wheel_scrolls_the_page_and_ctrl_wheel_zooms(page, boards):
    open_board(page, boards, "n=64&count=12")
    point_at(plot(page, 0), 0.5, 0.5)
    page.mouse.wheel(0, 150)
    expect(page.locator(".grid")).not_to_have_class(re.compile("zoomed"))
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 50")
    point_at(plot(page, 0), 0.5, 0.5)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -150)
    page.keyboard.up("Control")
    expect(page.locator(".grid")).to_have_class(re.compile("zoomed"))


def test_masked_cells_are_named_and_differ_from_zero(page, boards):
    shown = open_board(page, boards, "case=causal&n=20")
    point_at(plot(page, 0), 0.9, 0.3)
    row, col = cell(shown)
    assert col > row
    assert values(page) == ["masked", "masked"]
    expect(page.locator(".what")).to_have_text("masked")
    point_at(plot(page, 0), 0.3, 0.9)
    row, col = cell(shown)
    assert values(page) == [f"{weight(0, row, col):#.3g}", f"−{weight(1, row, col):#.3g}"]
    expect(page.locator(".legend")).to_have_attribute("aria-label", re.compile(r"^weight: −0\.097 … 0\.097$"))


def test_hostile_tokens_and_titles_stay_text(page, boards):
    open_board(page, boards, "case=hostile")
    page.get_by_role("application").first.focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".where")).to_have_text('query 0 “<img src=x onerror="window.hit=1">” → key 1 “ab\u2401\u240a”')
    expect(page.locator(".title").first).to_have_text("<script>window.hit=1</script> 0")
    assert page.locator(".board img, .board script").count() == 0
    svg = ElementTree.parse(saved(page, "Download as SVG"))
    assert not [e for e in svg.iter() if e.tag.endswith(("script", "foreignObject"))]
    assert page.evaluate("window.hit") is None


def test_the_board_is_saved_as_png_and_svg(page, boards):
    shown = open_board(page, boards, "case=causal&n=24&count=3&ceiling=0.05")
    expect(page.locator(".legend")).to_have_attribute("aria-label", re.compile(r"; < −0\.05 \(min −0\.097\)$"))
    width = shown.bounding_box()["width"]
    page.mouse.click(*on(plot(page, 0), 0.5, 0.6))
    expect(shown).to_have_attribute("data-pinned", re.compile(r"\d"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as PNG").click()
    assert download.value.suggested_filename == "two panels.png"
    png = Path(download.value.path())
    content = png.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", content[16:24])
    assert width < size[0] / 2 < width + 60, "twice the board's width and a margin"
    assert len({*Image.open(png).convert("RGB").get_flattened_data()}) > 50
    svg = ElementTree.parse(saved(page, "Download as SVG")).getroot()
    words = [e.text for e in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Panel 0", "Panel 1", "Panel 2", "a & b", "keys →", "queries →", "masked", "t23"} <= set(words)
    assert page.url in "".join(words), "the link that opens it again, on as many lines as it takes"
    assert {"weight", "above 0.05 (up to 0.097)", "< −0.05 (min −0.097)"} <= set(words)
    images = svg.iter("{http://www.w3.org/2000/svg}image")
    assert [(e.get("width"), e.get("height")) for e in images] == [("24", "24")] * 3, "one pixel a cell"
    assert float(svg.get("width")) == size[0] / 2


@pytest.mark.parametrize("transform", ["linear", "sqrt", "log"])
def test_unusual_matrices_are_drawn_and_read(page, boards, transform):
    open_board(page, boards, f"case=odd&scale=panel&transform={transform}")
    shown = []
    for panel in range(6):
        point_at(plot(page, panel), 0.9, 0.75)
        expect(page.locator(".tip")).to_be_visible()
        shown.append(values(page)[panel])
    assert shown == ["1.00", "0", "masked", "1.00\u00a0×\u00a010⁻⁹", "1.00", "−1.00"]


def test_panels_of_another_shape_keep_their_own_columns(page, boards):
    open_board(page, boards, "case=narrow")
    point_at(plot(page, 2), 0.95, 0.5)
    expect(page.locator(".where")).to_contain_text("key 4 “e”")
    assert values(page) == ["", "", "1.00"]
    point_at(plot(page, 0), 0.5, 0.5)
    expect(page.locator(".value").nth(2)).to_have_text("")
    assert all(values(page)[:2])


def test_the_theme_is_followed(page, boards):
    shown = open_board(page, boards, "case=causal")
    light = picture(plot(page, 0))
    darken(page, shown)
    dark = picture(plot(page, 0))
    spot = (round(0.9 * light.width), round(0.2 * light.height))  # A masked cell is here.
    assert sum(light.getpixel(spot)) > 600
    assert sum(dark.getpixel(spot)) < 250
    assert sum(dark.getpixel((2, dark.height - 3))) < 150, "the page's background next to the axes"


def test_a_pin_sends_kilobytes_and_new_values_are_painted_immediately(page, boards, record_property):
    received = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    shown = open_board(page, boards, "n=512&count=4")
    received.clear()
    page.mouse.click(*on(plot(page, 0), 0.5, 0.6))
    expect(page.get_by_text(re.compile(r"pinned \d+"))).to_be_visible()
    settle(page)
    assert sum(received) < 100_000
    received.clear()
    paints = shown.get_attribute("data-paints")
    page.get_by_role("button", name="other values").click()
    expect(shown).not_to_have_attribute("data-paints", paints)
    settle(page)
    assert 4 * 512 * 512 * 2 < sum(received) < 4 * 512 * 512 * 2 + 150_000
    record_property("paint_ms", shown.get_attribute("data-paint-ms"))
    assert float(shown.get_attribute("data-paint-ms")) < 2000


def test_the_board_can_be_removed_and_shown_again(page, boards):
    open_board(page, boards)
    for _ in range(2):
        page.get_by_text("shown", exact=True).click()
        expect(page.locator(".board")).to_have_count(0)
        settle(page)
        page.mouse.move(400, 400)
        page.set_viewport_size({"width": 1300, "height": 900})
        page.get_by_text("shown", exact=True).click()
        expect(page.locator(".board[data-paints]")).to_have_count(1)
        point_at(plot(page, 0), 0.5, 0.5)
        expect(page.locator(".tip")).to_be_visible()


def test_columns_follow_the_width(page, boards):
    open_board(page, boards, "n=20&count=8")
    for width, columns in ((1560, 4), (860, 3), (700, 2), (390, 8)):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('[data-testid=stBidiComponentIsolated]').shadowRoot"
            f".querySelector('.grid')).gridTemplateColumns.split(' ').length === {columns}"
        )
        grid = page.locator(".grid").bounding_box()
        assert grid["x"] + grid["width"] <= width
        frames = [page.locator("figure").nth(i).bounding_box() for i in range(8)]
        if columns < 8:
            assert max(frame["x"] + frame["width"] for frame in frames) <= width
    assert len({frame["y"] for frame in frames}) == 1, "on a phone, panels are swiped"
    titles = page.locator("figure .title")
    assert len({title.bounding_box()["y"] for title in titles.all()}) == 1
    expect(page.get_by_text("Swipe for ")).to_have_text(f"Swipe for {' · '.join(titles.all_inner_texts()[1:])} →")
    page.set_viewport_size({"width": 700, "height": 900})
    expect(page.get_by_text("Swipe for ")).to_have_count(0)
    assert frames[0]["width"] < 390 < frames[1]["x"] + frames[1]["width"]


def test_on_a_phone_taps_read_and_pin_and_one_finger_scrolls(phone, boards):
    shown = open_board(phone, boards, "n=100&count=6")
    phone.locator(".plot").first.scroll_into_view_if_needed()
    phone.touchscreen.tap(*on(plot(phone, 0), 0.5, 0.5))
    expect(phone.locator(".tip")).to_be_visible()
    row, col = cell(shown)
    assert values(phone)[0] == f"{weight(0, row, col):#.3g}"
    assert shown.get_attribute("data-pinned") == ""
    phone.touchscreen.tap(*on(plot(phone, 0), 0.52, 0.52))
    expect(phone.get_by_text(f"pinned {row}")).to_be_visible()
    devtools = phone.context.new_cdp_session(phone)
    x, y = on(plot(phone, 0), 0.5, 0.6)

    def drag(*fingers):
        """Move each finger from its first point to its second."""
        for step in range(11):
            points = [
                {"x": a + (c - a) * step / 10, "y": b + (d - b) * step / 10, "id": i}
                for i, (a, b, c, d) in enumerate(fingers)
            ]
            kind = "touchMove" if step else "touchStart"
            devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            phone.wait_for_timeout(16)
        devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        phone.wait_for_timeout(500)

    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    before = phone.evaluate(scrolled)
    drag((x, y, x, y - 100))
    assert phone.evaluate(scrolled) > before + 60
    phone.evaluate(f"{scrolled} = {before}")
    drag((x - 20, y, x - 110, y), (x + 20, y, x + 110, y))
    expect(phone.locator(".grid")).to_have_class(re.compile("zoomed"))
    before, paints = phone.evaluate(scrolled), shown.get_attribute("data-paints")
    drag((x, y, x, y - 100))
    assert phone.evaluate(scrolled) == before, "zoomed in, a finger moves the matrix"
    expect(shown).not_to_have_attribute("data-paints", paints)


def test_heads_are_chosen_by_pointer_and_keyboard(page, boards):
    open_board(page, boards, "case=heads")
    grid = page.locator(".thumbnails canvas").first
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    pitch = (box["width"] - 28) / 12
    spot = (box["x"] + 26 + 7.5 * pitch, box["y"] + 18 + 3.5 * pitch)
    page.mouse.move(*spot)
    expect(page.locator(".thumbnails .tip")).to_have_text("layer 3, head 7")
    page.mouse.click(*spot)
    expect(page.get_by_text("chosen (3, 7)")).to_be_visible()
    page.mouse.move(5, 5)
    grid.focus()
    for key in ("ArrowDown", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text("chosen (4, 6)")).to_be_visible()
    for key in ("End", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text("chosen (5, 11)")).to_be_visible()


def test_a_knob_sends_one_value_at_a_time_and_the_newest_wins(page, boards):
    shown = open_board(page, boards, "case=knob")
    slider = page.get_by_role("slider", name="Panel 1: window")
    expect(page.get_by_role("slider")).to_have_count(1)
    expect(slider).to_have_attribute("aria-valuetext", "5")
    slider.evaluate(
        """(slider) => { for (let i = 6; i < 16; i++) {
            slider.value = i;
            slider.dispatchEvent(new Event("input"));
        } }"""
    )
    expect(slider).to_have_attribute("aria-valuetext", "15")
    expect(page.get_by_text("turned to 15 in 2")).to_be_visible()
    settle(page)
    expect(page.get_by_text("turned to 15 in 2")).to_be_visible()
    slider.press("ArrowLeft")
    expect(page.get_by_text("turned to 14 in 3")).to_be_visible()
    expect(page.locator(".knob:visible")).to_have_attribute("data-shown", "14")
    assert shown.get_attribute("data-cell") in (None, ""), "its keys move no cell"
    title = next(e.text for e in ElementTree.parse(saved(page, "Download as SVG")).iter() if "1 ·" in (e.text or ""))
    assert title == "Panel 1 · window 14"
