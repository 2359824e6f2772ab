"""A browser test of a board of matrices in JupyterLab: the value under the pointer and the pinned row are correct."""

import os
import re
import sys
import time

import pytest
import torch
from conftest import ROOT, WIDE, free_port, serve
from playwright.sync_api import expect

import attention_core as ac

SHOW = """
import torch
import attention_core as ac

draw = torch.Generator().manual_seed(1)
q, k, v = torch.randn(2, 5, 4, generator=draw), *torch.randn(2, 2, 9, 4, generator=draw)
widget = ac.show(ac.compare(q, k, v, ["softmax", "linear"]), head=1)
widget
"""
TIP = re.compile(r"query (\d+) “t\1” → key (\d+) “k\2”")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Yield the address of a JupyterLab with a notebook, and without the settings of the user."""
    folder = tmp_path_factory.mktemp("lab")
    import nbformat  # takes a second, and every test process collects this file

    cells = [nbformat.v4.new_code_cell(code.strip()) for code in (SHOW, "print('pinned', widget.pinned)")]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (folder / "files").mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "files" / "board.ipynb")
    port = free_port()
    own = {f"{name}_DIR": str(folder / name.lower()) for name in ("JUPYTER_CONFIG", "JUPYTER_DATA", "JUPYTER_RUNTIME")}
    environment = os.environ | own | {"IPYTHONDIR": str(folder / "ipython"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={folder / 'files'}", "--LabApp.news_url="]
    process = serve(command, port, folder, health="api", env=environment, cwd=folder)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


@pytest.fixture
def notebook(lab, chromium):
    """Yield the page of the opened notebook, when its kernel is ready."""
    context = chromium.new_context(**WIDE)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(f"{lab}/lab/tree/board.ipynb")
    expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first).to_be_visible()
    yield page
    context.close()


def run_until(page, number, shown):
    """Run a cell again and again until something is shown.

    JupyterLab forgets a cell that it sends while it still connects to the kernel, and the widget reports a pin late.
    """
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(number)
    until = time.monotonic() + 60
    while not shown.is_visible():
        assert time.monotonic() < until
        if "*" not in cell.locator(".jp-InputPrompt").inner_text():
            cell.locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
        page.wait_for_timeout(1000)


def point(page, canvas, across, down):
    """Point at a place on a canvas until a cell's value is shown: the notebook may move the canvas while it loads."""
    tip, until = page.locator(".board .tip"), time.monotonic() + 60
    page.mouse.move(0, 0)
    while not tip.is_visible():
        assert time.monotonic() < until
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
        page.wait_for_timeout(100)
    return tip


def test_the_value_and_the_pinned_row_equal_those_of_python(notebook):
    canvas = notebook.locator(".board figure canvas").first
    run_until(notebook, 0, canvas)
    draw = torch.Generator().manual_seed(1)
    q, k, v = torch.randn(2, 5, 4, generator=draw), *torch.randn(2, 2, 9, 4, generator=draw)
    weights = ac.compare(q, k, v, ["softmax"]).matrices["softmax"][1]
    seen = set()
    for across, down in ((0.3, 0.4), (0.6, 0.6), (0.9, 0.9)):
        tip = point(notebook, canvas, across, down)
        row, col = map(int, TIP.search(tip.inner_text()).groups())
        shown = float(tip.locator(".what").inner_text().removeprefix("weight "))
        assert shown == pytest.approx(float(weights[row, col]), rel=5e-3)
        seen.add((row, col))
    assert len(seen) == 3
    assert (row, col) == (4, 8)
    notebook.mouse.down()
    notebook.mouse.up()
    run_until(notebook, 1, notebook.locator(".jp-OutputArea-output").get_by_text("pinned 4"))
