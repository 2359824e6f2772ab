"""Browser tests of the board of matrices as a notebook widget, on a page that renders the widget as anywidget does."""

import base64
import json

import pytest
import torch
from playwright.sync_api import expect

import attention_core as ac
from attention_lab.app_modules import board_script

ADDRESS = "http://notebook.test/lab?token=secret"
HOST = """
<!doctype html>
<html style="--jp-layout-color0: white; --jp-content-font-color0: rgba(0, 0, 0, 1)">
<body data-jp-theme-light="true">
<button id="own">Run</button><figure id="figure">A figure of the notebook</figure>
<div id="first" style="width: 1000px"></div><div id="second" style="width: 1000px"></div>
</body></html>
"""
MOUNT = """
async ([script, id, message, settings]) => {
  const bytes = Uint8Array.from(atob(message), (c) => c.charCodeAt(0));
  const state = { message: new DataView(bytes.buffer), settings, pinned: null }, heard = [];
  const change = (name, value) => {
    state[name] = value;
    for (const [events, act] of heard) if (events.split(" ").includes(`change:${name}`)) act();
  };
  const model = {
    get: (name) => state[name],
    set: change,
    save_changes: () => (window.saved ??= []).push([id, state.pinned]),
    on: (...listener) => heard.push(listener),
    off: (...listener) => heard.splice(heard.findIndex((one) => one[0] === listener[0] && one[1] === listener[1]), 1),
  };
  const { default: widget } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const leave = widget.render({ model, el: document.getElementById(id) });
  (window.widgets ??= {})[id] = { change, leave, heard };
}
"""
Q, K, V = torch.randn(3, 2, 8, 4, generator=torch.Generator().manual_seed(1))
WORDS = ["softmax", "local~window~1"]


@pytest.fixture
def notebook(newly_opened):
    """Return a page with two widgets that show the same matrices."""
    page = newly_opened
    page.route(ADDRESS, lambda route: route.fulfill(body=HOST, content_type="text/html"))
    page.goto(ADDRESS)
    widget = ac.show(ac.compare(Q, K, V, WORDS, tokens="abcdefgh"), head=1)
    for name in ("first", "second"):
        page.evaluate(MOUNT, [board_script(), name, base64.b64encode(widget.message).decode(), widget.settings])
    expect(page.locator("#second .plot canvas").first).to_be_visible()
    return page


def cell(page, widget, panel, row, col):
    """Return the position of a cell of an 8 x 8 matrix on the page."""
    box = page.locator(f"#{widget} figure").nth(panel).locator("canvas").first.bounding_box()
    # The matrix ends at the right and the lower edge of the picture. The labels take 46 pixels at the left.
    side = page.locator(f"#{widget} figure").nth(panel).evaluate("one => one.querySelector('canvas').clientWidth") - 47
    left, top = box["x"] + box["width"] - 1 - side, box["y"] + box["height"] - 1 - side
    return left + (col + 0.5) * side / 8, top + (row + 0.5) * side / 8


def test_the_pointer_reads_a_weight_in_one_widget_only(notebook):
    matrices = ac.compare(Q, K, V, WORDS).matrices
    for row, col in ((2, 5), (7, 0), (4, 4)):
        notebook.mouse.move(*cell(notebook, "first", 0, row, col))
        tip = notebook.locator("#first .tip")
        expect(tip).to_contain_text(f"query {row} “{'abcdefgh'[row]}” → key {col} “{'abcdefgh'[col]}”")
        shown = float(tip.locator(".what").inner_text().removeprefix("weight "))
        assert shown == pytest.approx(float(matrices["softmax"][1, row, col]), rel=5e-3)
        # The title of the other matrix shows the value of the same cell.
        hidden = abs(row - col) > 1
        other = notebook.locator("#first figure").nth(1).locator(".value")
        expect(other).to_have_text("masked" if hidden else f"{matrices[WORDS[1]][1, row, col]:.3g}")
        expect(notebook.locator("#second .tip")).to_be_hidden()


def test_a_click_pins_a_row_and_python_can_pin_another(notebook):
    notebook.mouse.click(*cell(notebook, "first", 0, 3, 3))
    notebook.wait_for_function("window.saved?.length === 1")
    assert notebook.evaluate("window.saved") == [["first", 3]]
    before = notebook.locator("#second .board").get_attribute("data-paints")
    notebook.evaluate("widgets.second.change('pinned', 6)")
    notebook.wait_for_function(
        f"document.querySelector('#second').shadowRoot.querySelector('.board').dataset.paints > {before}"
    )
    assert notebook.evaluate("window.saved") == [["first", 3]]


def test_the_styles_of_a_widget_are_isolated_and_follow_the_notebooks_theme(notebook):
    script = """id => {
        const { minWidth, height, display, margin } = getComputedStyle(document.getElementById(id));
        return [minWidth, height, display, margin];
    }"""
    plain = notebook.context.new_page()
    plain.set_content(HOST)
    for name in ("own", "figure"):
        assert notebook.evaluate(script, name) == plain.evaluate(script, name)
    plain.close()
    assert notebook.evaluate("document.querySelectorAll('style').length") == 0

    board = "document.querySelector('#first').shadowRoot.querySelector('.board')"
    colour = f"getComputedStyle({board}).color"
    assert notebook.evaluate(colour) == "rgb(0, 0, 0)"
    corner = f"""() => {{
        const canvas = {board}.querySelector("figure canvas");
        return [...canvas.getContext("2d").getImageData(canvas.width - 8, canvas.height - 8, 1, 1).data];
    }}"""
    light = notebook.evaluate(corner)
    notebook.evaluate("""() => {
        document.documentElement.style.setProperty('--jp-layout-color0', '#111111');
        document.documentElement.style.setProperty('--jp-content-font-color0', '#eeeeee');
        document.body.dataset.jpThemeLight = 'false';
    }""")
    assert notebook.evaluate(colour) == "rgb(238, 238, 238)"
    notebook.wait_for_function(f"String(({corner})()) !== '{','.join(map(str, light))}'")


def test_saved_pictures_do_not_contain_the_notebooks_address(notebook, tmp_path):
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg")):
        with notebook.expect_download() as saved:
            notebook.locator(f"#first [data-act={kind}]").click()
        data = saved.value.path().read_bytes()
        assert data.startswith(start)
        assert b"secret" not in data
        assert saved.value.suggested_filename == f"attention-matrices.{kind}"
    assert b"Softmax" in data


def test_a_closed_widget_stops_listening(notebook):
    notebook.evaluate("widgets.first.leave()")
    assert notebook.evaluate("widgets.first.heard.length") == 0
    assert notebook.locator("#first .board").count() == 0
    assert json.loads(notebook.evaluate("JSON.stringify(widgets.second.heard.length)")) == 2
