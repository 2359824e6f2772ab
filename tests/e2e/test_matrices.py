"""Browser tests of the Matrices page: its input, settings, pinned rows, heads, links and downloads."""

import io
import re
from urllib.parse import urlencode
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import FORGET, arrays, board, cell, drawn, open_input, query, rows, saved, settle, switch, visit, words
from browser import point_at as point_at_plot
from playwright.sync_api import expect

import attention_core as ac
from app.state import presets
from app.state.session import default_variants, first_variants, write_text
from attention_core.analysis.matrix.head_scores import head_scores, ranked

SMALL = "?input=synthetic&n=20&heads=2"


def matrices(page, server, link=""):
    visit(page, f"{server}/matrices{link}")
    board(page).wait_for()
    settle(page)


def panels(page):
    return board(page).locator("figure")


def paints(page):
    return int(board(page).get_attribute("data-paints"))


def point_at(page, panel, across, down):
    point_at_plot(page.locator(f'[data-panel="{panel}"] .plot'), across, down)


def opener(page, name):
    return page.get_by_role("button", name=f"Settings of {name}")


def upload(page, name, **arrays):
    """Choose a file with four tokens and further arrays as the input."""
    file, q = io.BytesIO(), np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    np.savez(file, q=q, k=q, v=q, **arrays)
    open_input(page)
    page.get_by_text("File", exact=True).click()
    page.locator('input[type="file"]').set_input_files(
        {"name": name, "mimeType": "application/zip", "buffer": file.getvalue()}
    )


def test_home_leads_to_a_comparison(page, server):
    visit(page, "&".join([f"{server}/?variants=softmax", *(f"family={family}" for family in ac.families())]))
    expect(page.get_by_text("All variants")).to_be_visible()
    expect(page.locator(".variant .matrix")).to_have_count(len(ac.all_variants()))
    row = page.locator(".variant").filter(has_text="Nyström")
    row.get_by_role("link", name="Compare it with softmax").click()
    page.wait_for_url("**/matrices*")
    settle(page)
    expect(panels(page)).to_have_count(2)
    assert "nystrom" in query(page)


def test_the_page_opens_with_a_story_and_four_variants(newly_opened, server):
    page = newly_opened
    page.add_init_script(FORGET)
    matrices(page, server)
    expect(panels(page)).to_have_count(len(first_variants()))
    assert query(page) == ""
    assert page.get_by_test_id("stMain").bounding_box()["x"] == 0, "the sidebar is folded"
    open_input(page)
    expect(page.get_by_text("12 heads × 32 dims")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_name_of_the_input_links_to_the_input_panel(newly_opened, server, width):
    page = newly_opened
    page.add_init_script(FORGET)
    page.set_viewport_size({"width": width, "height": 844})
    matrices(page, server, SMALL + "&head=1")
    here = page.url
    field = page.get_by_test_id("stSidebar").get_by_text("Synthetic")
    expect(field).not_to_be_in_viewport()
    page.get_by_role("link", name="head 1 · 20 tokens").press("Enter")
    expect(field).to_be_in_viewport()
    page.wait_for_function("() => document.activeElement.closest('[data-testid=stSidebar]')")
    assert page.url == here


def test_a_number_under_the_pointer_is_the_weight_of_the_core(page, server):
    matrices(page, server, SMALL + "&head=1")
    point_at(page, "nystrom", 0.5, 0.5)
    row, col = cell(board(page))
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=20, heads=2))
    for attention in default_variants():
        true = float(attention.weights(qkv.q, qkv.k)[1, row, col])
        shown = page.locator(f'[data-panel="{attention.key}"] .value').inner_text().replace("\N{MINUS SIGN}", "-")
        if shown != "masked":
            assert float(shown.removesuffix("%")) / 100 == pytest.approx(true, rel=6e-3, abs=1e-9)


def test_typing_another_text_changes_tokens_and_link(page, server):
    matrices(page, server)
    open_input(page)
    box = page.get_by_label("Your text")
    box.fill("one two three four")
    box.press("Control+Enter")
    expect(page.get_by_text(re.compile("· 6 tokens"))).to_be_visible()
    settle(page)
    assert "text=" in query(page)


def test_a_head_is_selected_by_its_picture(page, server):
    matrices(page, server)
    open_input(page)
    board = page.locator(".board.thumbnails canvas").first
    board.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        board.press(key)
    page.wait_for_url(re.compile("layer="))
    settle(page)
    assert {"layer=3", "head=4"} <= words(page)


def test_share_offers_the_address(page, server):
    matrices(page, server, SMALL)
    for view in ("difference", "weights"):
        switch(page, view.capitalize())
        assert ("view=difference" in words(page)) == (view == "difference")
        page.get_by_role("button", name="Share").click()
        expect(page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")).to_have_text(page.url)
        page.keyboard.press("Escape")


def test_a_knob_repaints_only_its_panel_and_changes_the_link(page, server):
    matrices(page, server, SMALL)
    here, other = (page.locator(f'[data-panel="{key}"] canvas').first for key in ("local", "softmax"))
    before, untouched = drawn(here), drawn(other)
    slider = page.get_by_role("slider", name="Local: window")
    start, link = slider.get_attribute("aria-valuetext"), query(page)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=4)
    value = slider.get_attribute("aria-valuetext")
    expect(page.locator('[data-panel="local"] .knob')).to_have_attribute("data-shown", value)
    assert query(page) == link, "while the knob is dragged, only its panel is drawn"
    text = page.locator(".st-key-matrices-headline")
    notes = page.locator(".strip .note")
    expect(text).to_have_css("opacity", "0.35")  # The sentence still describes the earlier window, so it is pale.
    assert [bool(note) for note in notes.all_text_contents()] == [
        title != "Local" for title in page.locator(".strip .title").all_text_contents()
    ]
    assert drawn(here) != before
    assert drawn(other) == untouched
    page.mouse.up()
    page.wait_for_url(f"**local~window~{value}**")
    expect(slider).to_have_attribute("aria-valuetext", value)
    settle(page)
    expect(text).to_have_css("opacity", "1")
    assert all(notes.all_text_contents())
    page.go_back()
    expect(slider).to_have_attribute("aria-valuetext", start)


def test_settings_open_above_the_board_and_never_over_it(page, server):
    matrices(page, server, SMALL + "&variants=softmax&variants=local&variants=nystrom~landmarks~7")
    opener(page, "Nyström").click()
    knob = page.get_by_role("slider", name=re.compile("^Landmarks"))
    expect(knob).to_have_attribute("aria-valuetext", "7")
    settle(page)
    form = page.locator(".st-key-variants-settings").bounding_box()
    assert form["y"] + form["height"] <= board(page).bounding_box()["y"]
    knob.press("ArrowRight")
    expect(page.get_by_role("slider", name="Nyström: landmarks")).to_have_attribute("aria-valuetext", "8")
    page.locator('[data-panel="nystrom"] .title').click()
    expect(knob).to_be_hidden()


def test_the_four_matrices_are_entirely_visible_on_a_projector(newly_opened, server):
    page = newly_opened
    page.add_init_script(FORGET)
    page.set_viewport_size({"width": 1280, "height": 720})
    matrices(page, server)
    boxes = [panels(page).nth(i).bounding_box() for i in range(4)]
    assert len({box["y"] for box in boxes}) == 1
    assert max(box["y"] + box["height"] for box in boxes) <= 720


def test_causal_leaves_out_variants_with_the_reason(page, server):
    matrices(page, server, SMALL)
    page.get_by_text("Causal", exact=True).click()
    expect(page.get_by_text("Nyström cannot be causal", exact=False).first).to_be_visible()
    expect(panels(page)).to_have_count(7)
    expect(opener(page, "Nyström")).to_be_hidden()


def test_a_click_pins_a_row_and_shows_its_bars(page, server):
    matrices(page, server, SMALL + "&more=row")
    point_at(page, "softmax", 0.25, 0.4)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(r"row=\d"))
    settle(page)
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    row = re.search(r"row=(\d+)", query(page))[1]
    expect(board(page)).to_have_attribute("data-pinned", row)
    expect(page.locator(".strips")).to_have_attribute("data-pinned", row)


SHADES = "words => words.map((word) => getComputedStyle(word).backgroundColor)"


PRESSED = """async (word) => {
    word.click();
    for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    return word.classList.contains("pinned");
}"""


def strip(page, key):
    return page.locator(f'[data-strip="{key}"]')


@pytest.mark.parametrize("height", [900, 500])
def test_each_of_three_strips_is_below_its_panel_unless_panels_are_narrow(page, server, height):
    page.set_viewport_size({"width": 1440, "height": height})
    variants = "&variants=softmax&variants=local~window~3&variants=linear&variants=nystrom~landmarks~4"
    matrices(page, server, f"{SMALL}&row=3&view=difference{variants}")
    expect(page.locator(".strip")).to_have_count(3)
    for key in ("local", "linear", "nystrom"):
        panel, below = (each.bounding_box() for each in (page.locator(f'[data-panel="{key}"]'), strip(page, key)))
        assert below["width"] >= 270
        if height == 900 or key == "local":
            assert below["x"] == pytest.approx(panel["x"], abs=1)


def test_a_word_is_pinned_without_the_server_and_unpinned_by_a_key(page, server):
    matrices(page, server, SMALL + "&head=1&variants=softmax&variants=local~window~3&row=4")
    before = strip(page, "softmax").locator(".word, .sliver").evaluate_all(SHADES)
    assert strip(page, "local").locator('[data-j="9"]').evaluate(PRESSED), "drawn three frames later, before any answer"
    expect(board(page)).to_have_attribute("data-pinned", "9")
    assert strip(page, "softmax").locator(".word, .sliver").evaluate_all(SHADES) != before
    assert strip(page, "local").locator(".masked").count() == 20 - 7
    for key, attention in (("softmax", ac.get("softmax")), ("local", ac.get("local", window=3))):
        shades = strip(page, key).locator("[data-j]").evaluate_all(SHADES)
        dark = np.array([-sum(map(int, re.findall(r"\d+", shade)[:3])) for shade in shades])
        qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=20, heads=2))
        weights = attention.weights(qkv.q, qkv.k)[1, 9].numpy()
        seen = np.abs(np.arange(20) - 9) <= (3 if key == "local" else 20)
        more = (weights[:, None] - weights > 0.01) & seen[:, None] & seen
        assert more.sum() > 10
        assert (dark[:, None] > dark)[more].all(), "the more weight, the darker"
    strip(page, "local").locator('[data-j="8"]').hover()
    expect(strip(page, "softmax").locator(".at")).to_have_text(re.compile("“t8” [0-9.]+%"))
    page.wait_for_url(re.compile("row=9"))
    settle(page)
    page.locator(".strips").press("ArrowRight")
    page.locator(".strips").press("Escape")
    page.locator(".strips").press("Escape")
    page.wait_for_url(re.compile("row=none"))
    expect(page.get_by_text("Click a word to see its weights.")).to_be_visible()


def test_the_texts_of_strips_are_level_if_one_note_takes_two_lines(page, server):
    page.set_viewport_size({"width": 1280, "height": 720})
    variants = "variants=softmax&variants=local~window~106&variants=linear&variants=nystrom~landmarks~16"
    visit(page, f"{server}/matrices?view=difference&{variants}")
    notes = {each.bounding_box()["height"] for each in page.locator(".strip .note").all()}
    assert len(notes) == 2, "the note of Local is shorter than the others, because it changes no weight"
    assert len({each.bounding_box()["y"] for each in page.locator(".strip .text").all()}) == 1
    assert len({each.bounding_box()["y"] for each in page.locator(".strip .title").all()}) == 1


def test_a_strip_has_an_ellipsis_wherever_words_are_left_out(page, server):
    page.set_viewport_size({"width": 1280, "height": 720})
    visit(page, f"{server}/matrices")
    script = """(all) => all.map((each) => [
        each.classList.contains("sliver"),
        getComputedStyle(each, "::before").content.includes("…"),
        each.offsetWidth,
    ])"""
    tokens = strip(page, "softmax").locator(".word, .sliver").evaluate_all(script)
    starts = [is_sliver and (not i or not tokens[i - 1][0]) for i, (is_sliver, *_) in enumerate(tokens)]
    assert sum(starts) > 1
    assert [has_ellipsis for _, has_ellipsis, _ in tokens] == starts
    assert {width for _, has_ellipsis, width in tokens if has_ellipsis} == {14}


def test_the_numbers_of_four_variants_fit_on_a_phone_and_have_equal_columns_elsewhere(page, phone, server):
    for each in (page, phone):
        visit(each, f"{server}/matrices?special=0&variants=softmax&variants=local&variants=linear&variants=nystrom")
        expect(tables := each.locator(".st-key-matrices-numbers table")).to_have_count(2)
        assert all(
            tables.evaluate_all("(all) => all.map((table) => table.offsetWidth <= table.parentElement.clientWidth)")
        )
    widths = page.locator(".st-key-matrices-numbers th").evaluate_all("(all) => all.map((cell) => cell.offsetWidth)")
    assert max(widths) - min(widths) <= 1


@pytest.mark.parametrize("link", ["?variants=softmax", "?row=none"])
def test_a_single_strip_has_no_empty_space_below(page, server, link):
    matrices(page, server, link)
    strips = page.locator(".strips")
    expect(strips.locator(".text")).to_have_count(1)
    room = page.locator(".st-key-matrices-strips").bounding_box()["height"]
    assert room - strips.bounding_box()["height"] < 8


def test_a_head_is_chosen_in_the_large_view_of_all_heads(page, server):
    first = ranked(head_scores(ac.inputs.record_layers(presets.texts()["repeats"]), causal=False), "sink")[0]
    matrices(page, server, "?text=@repeats&variants=softmax&more=heads&head_order=sink")
    large = page.locator('[data-board="heads.large"] canvas').first
    before = query(page)
    large.click(position={"x": 20, "y": 20})
    expect(page.get_by_text(f"layer {first.layer} · head {first.head} · 17 tokens")).to_be_visible()
    assert query(page) != before


def test_a_link_opens_the_same_state_in_another_browser(page, server, other_page):
    link = SMALL + "&variants=softmax&variants=local~window~3&causal=1&row=4&tone=log&view=difference"
    matrices(page, server, link)
    expect(page.get_by_role("slider", name="Local: window")).to_have_attribute("aria-valuetext", "3")
    switch(page, "Weights")
    matrices(other_page, server, "?" + query(page))
    expect(other_page.get_by_text("20 tokens").first).to_be_visible()
    expect(other_page.get_by_role("slider", name="Local: window")).to_have_attribute("aria-valuetext", "3")
    assert words(other_page) == words(page)
    assert "view=" not in query(other_page)
    here, there = (drawn(each.locator('[data-panel="local"] canvas').first) for each in (page, other_page))
    assert here == there


def test_the_input_stays_when_the_page_changes(page, server):
    matrices(page, server, SMALL + "&causal=1")
    page.get_by_role("link", name="Home").first.click()
    expect(page.get_by_text("All variants")).to_be_visible()
    settle(page)
    page.get_by_test_id("stMain").get_by_role("link", name="Matrices What").click()
    expect(page.get_by_text("20 tokens").first).to_be_visible()
    settle(page)
    assert {"input=synthetic", "n=20", "causal=1"} <= words(page)


def test_hostile_tokens_stay_text(page, server):
    matrices(page, server)
    open_input(page)
    box = page.get_by_label("Your text")
    box.fill("<img src=x onerror=window.hit=1> **bold** $x$ :red[y] <b>z</b>")
    box.press("Control+Enter")
    settle(page)
    point_at(page, "softmax", 0.25, 0.3)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile("row="))
    settle(page)
    expect(page.locator(".strips").get_by_text("<", exact=True).first).to_be_visible()
    assert page.evaluate("window.hit") is None


@pytest.mark.parametrize("token", ["$&", "$$", "$1", "{other}"])
def test_the_strips_show_a_token_unchanged(page, server, token):
    matrices(page, server, "?variants=softmax")
    upload(page, "mine.npz", tokens=np.array([token, "b", "c", "d"]))
    strip(page, "softmax").locator('[data-j="0"]').click()
    expect(strip(page, "softmax").locator('[data-j="0"]')).to_have_text(token)
    expect(strip(page, "softmax").locator(".at")).to_have_text(re.compile(rf"“{re.escape(token)}” [0-9.]+%"))


def test_the_numbers_can_be_downloaded(page, server):
    matrices(page, server, SMALL + "&variants=softmax&variants=linear&more=download")
    found = arrays(saved(page, "Matrices (NPZ)"))
    assert found["softmax"].shape == (20, 20)
    assert np.allclose(found["softmax"].sum(-1), 1, atol=1e-5)
    assert len(rows(saved(page, "Matrices (CSV)"))) == 2 * 20 * 20
    assert saved(page, page.locator('[data-act="png"]')).read_bytes().startswith(b"\x89PNG")


def test_a_picture_states_the_own_text_and_a_link_that_ends_before_the_edge(page, server):
    text = "Near the old bridge, the teacher took the long road by the river and sang all the way."
    query = urlencode({"text": write_text(text)[0], "variants": ["softmax", "local", "linear", "nystrom"]}, doseq=True)
    matrices(page, server, f"?{query}&special=0")
    svg = ElementTree.parse(saved(page, "Download as SVG")).getroot()
    lines = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert text in lines
    link = lines[lines.index(text) + 1 :]
    assert "".join(link) == page.url
    widths = page.evaluate(
        """([lines, font]) => lines.map((line) => {
            const pen = document.createElement("canvas").getContext("2d");
            pen.font = `11px ${font}`;
            return pen.measureText(line).width;
        })""",
        [link, svg.get("font-family")],
    )
    assert len(link) > 1
    assert max(widths) <= 0.95 * (float(svg.get("width")) - 32)


def test_no_other_host_is_requested(page, server):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    matrices(page, server, "?row=3&more=explain")
    assert not [url for url in requests if not url.startswith((server, "data:", "blob:"))]


def test_names_in_a_notice_become_neither_links_nor_entities(page, server):
    names = ["me@example.com", "www.example.org", "&lt;b&gt;"]
    matrices(page, server, "?variants=softmax")
    upload(page, "a@example.com.npz", **dict.fromkeys(names, np.ones(1)))
    notice = page.get_by_test_id("stAlert").filter(has_text="These arrays in the file are not used")
    expect(notice).to_be_visible()
    listed = notice.inner_text().replace("\u2060", "").rstrip(".").split(": ")[1]
    assert set(names) <= set(re.split(", | and ", listed))
    assert notice.locator("a").count() == 0
