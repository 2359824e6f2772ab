"""Browser tests of the Inside page, which shows the steps of an attention variant: steps, settings and highlights."""

import re

import numpy as np
from browser import BOARD, FORGET, arrays, board, point_at, query, saved, settle, visit, words
from playwright.sync_api import expect

import attention_core as ac
from attention_core.analysis.matrix.inside import intermediate_results
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

SMALL = "?input=synthetic&n=20&heads=2"


def inside(page, server, link=""):
    visit(page, f"{server}/inside{link}")
    expect(page.get_by_role("heading", name=re.compile("^How does .* work"))).to_be_visible()
    page.locator(f"{BOARD}, .js-plotly-plot").first.wait_for()  # Some steps have a chart and no board.
    settle(page)


def panels(page):
    return page.locator(f"{BOARD} figure .title").all_inner_texts()


def open_step(page, title):
    page.get_by_role("radio", name=title).click()


def test_a_visitor_opens_all_steps_of_nystrom_and_another_variant(page, server):
    inside(page, server, "?variants=softmax")
    expect(page.get_by_text("Neighbouring queries are averaged into query landmarks")).to_be_visible()
    expect(page.get_by_text("Variance that each landmark discards")).to_be_visible()
    assert query(page) == "variants=softmax"

    open_step(page, "1 · Three factors")
    settle(page)
    expect(page.locator(f"{BOARD} figure")).to_have_count(5)
    assert panels(page) == ["L", "Z", "R", "A", "Softmax (target)"]
    assert query(page) == "variants=softmax&step=2"
    marks = page.locator(f"{BOARD} figure .title.marked").evaluate_all(
        "(titles) => titles.map((each) => getComputedStyle(each, '::before').backgroundColor)"
    )
    symbols = page.locator("[data-testid=stMain] .katex .mord[style*=color]")
    colours = symbols.evaluate_all("(found) => found.map((each) => getComputedStyle(each).color)")
    assert len(set(marks)) == 4
    assert set(marks) <= set(colours), "symbols have the colours of their panels"

    open_step(page, "3 · The inverse")
    settle(page)
    expect(page.get_by_text("The exact inverse is worse: the error of A is")).to_be_visible()
    expect(page.get_by_test_id("stBidiComponentRegular")).to_have_count(3)

    page.get_by_role("combobox", name="Variant").click()
    page.get_by_role("option", name="Landmarks", exact=True).click()
    settle(page)
    assert query(page) == "variants=softmax&inside=landmark"
    expect(page.get_by_text("Each query attends to the landmarks of the keys")).to_be_visible()
    expect(page.get_by_role("radio", name="1 · Left factor")).to_be_checked()


def test_the_factors_and_their_product_share_one_line_on_a_projector(newly_opened, server):
    page = newly_opened
    page.add_init_script(FORGET)
    page.set_viewport_size({"width": 1280, "height": 720})
    inside(page, server)
    boxes = [page.locator(f"{BOARD} figure").nth(i).bounding_box() for i in range(5)]
    assert len({box["y"] for box in boxes}) == 1
    assert max(box["x"] + box["width"] for box in boxes) <= 1280
    assert max(box["y"] + box["height"] for box in boxes) <= 720
    expect(page.get_by_text("makes the matrix error smaller: 47% instead of")).to_be_in_viewport()


def test_the_menu_and_the_settings_share_a_line_on_a_phone(phone, server):
    inside(phone, server, SMALL + "&inside=nystrom~landmarks~4")
    menu = phone.get_by_role("combobox", name="Variant").bounding_box()
    button = phone.get_by_role("button", name=re.compile("Landmarks")).bounding_box()
    assert abs(menu["y"] + menu["height"] / 2 - button["y"] - button["height"] / 2) < 2
    assert menu["x"] + menu["width"] <= button["x"] < button["x"] + button["width"] <= 390


def test_a_knob_changes_the_step_and_its_parts(page, server):
    inside(page, server, SMALL + "&inside=nystrom~landmarks~4&step=2&head=1")
    page.get_by_role("button", name=re.compile("Landmarks 4")).click()
    page.get_by_role("slider", name="Landmarks").press("ArrowRight")
    settle(page)
    assert "inside=nystrom~landmarks~5" in words(page)
    page.keyboard.press("Escape")

    page.get_by_text("Export").click()
    found = arrays(saved(page, "All intermediate results (NPZ)"))
    qkv = SyntheticSource(SyntheticSpec(n=20, heads=2)).load()
    own = intermediate_results(qkv, ac.get("nystrom", landmarks=5), 1, False)
    assert set(found) == {*own.parts, "weights", "reference", "provenance"}
    for name, part in own.parts.items():
        np.testing.assert_allclose(found[name], part, rtol=1e-5)


def test_the_cell_under_the_pointer_is_named_by_its_own_axes(page, server):
    inside(page, server, SMALL + "&inside=nystrom~landmarks~4&step=2")
    point_at(page.locator(f"{BOARD} .plot").nth(2), 0.6, 0.2)
    expect(page.locator(f"{BOARD} .tip .where")).to_have_text(re.compile(r"^landmark [0-3] → key \d+ “"))
    expect(page.locator(f"{BOARD} .tip .what")).to_have_text(re.compile(r"^R \d"))


def test_the_factors_of_nystrom_are_drawn_in_proportion(page, server):
    inside(page, server, SMALL + "&inside=nystrom~landmarks~4&step=2")
    for index, name, across, down, hit in (
        (0, "L", 0.4, 0.7, True),
        (0, "L", 0.9, 0.2, False),
        (1, "Z", 0.4, 0.2, True),
        (1, "Z", 0.9, 0.2, False),
        (1, "Z", 0.4, 0.7, False),
        (2, "R", 0.8, 0.2, True),
        (2, "R", 0.4, 0.7, False),
    ):
        point_at(page.locator(f"{BOARD} .plot").nth(index), across, down)
        found = board(page).first.get_attribute("data-cell") != ""
        assert found == hit, f"{name} at {across}, {down}"


def test_a_token_pointed_at_in_a_factor_is_highlighted_in_all_matrices(page, server):
    inside(page, server, SMALL + "&inside=nystrom~landmarks~4&step=2")
    lit = page.locator(f"{BOARD} canvas[data-lit]:not([data-lit=''])")
    point_at(page.locator(f"{BOARD} .plot").first, 0.4, 0.5)
    expect(lit).to_have_count(4)
    row, column = board(page).first.get_attribute("data-cell").split(",")
    texts = [f"row {column}, column {column}", f"row {column}", f"row {row}", f"row {row}"]
    assert lit.evaluate_all("(found) => found.map((each) => each.dataset.lit)") == texts


def test_a_click_pins_nothing(page, server):
    inside(page, server, SMALL + "&inside=efficient")
    page.locator(f"{BOARD} figure .plot").first.click()
    settle(page)
    assert page.locator(BOARD).get_attribute("data-cell") != "", "the cell is read"
    assert page.locator(BOARD).get_attribute("data-pinned") == ""


def test_the_factors_and_their_product_are_seen_together_on_a_phone(phone, server):
    inside(phone, server)
    boxes = [phone.locator(f"{BOARD} figure").nth(i).bounding_box() for i in range(4)]
    assert max(box["x"] + box["width"] for box in boxes) <= 390
    assert boxes[3]["y"] + boxes[3]["height"] - boxes[0]["y"] < 700
