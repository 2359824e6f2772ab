"""Helpers for browser tests: open a page, wait until it is drawn, read its contents, and save its downloads."""

import csv
import io
import math
import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from PIL import Image
from playwright.sync_api import expect

BOARD = ".board:not(.thumbnails)"
"""Selector of the matrix board; ``[data-board]`` distinguishes several boards."""
STILL = """() => {
    const { testScriptState, testConnectionState } = document.querySelector("[data-testid=stApp]")?.dataset ?? {};
    const now = performance.now();
    const owed = now - (window.asked ?? -Infinity) < 5000; // no answer to the last request yet: a run may still start
    const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
    const unpainted = (host) => host.offsetWidth && host.shadowRoot?.querySelector(".board:not([data-paints])");
    // On a first visit, the run may end before the browser has loaded the scripts that draw the elements.
    const coming = document.querySelector("[data-testid=stSkeleton]") || hosts.some(unpainted);
    const running = testScriptState !== "notRunning" || testConnectionState !== "CONNECTED";
    if (running || owed || coming) window.since = undefined;
    else window.since ??= now;
    return now - (window.since ?? now) >= 300;
}"""
"""JavaScript that returns whether no run was in progress for 300 ms and all received elements are drawn."""
FORGET = "if (location.host) localStorage.clear();"
"""JavaScript that makes the browser forget whether the sidebar was folded; for ``add_init_script``."""
NAMED = ".annotation[role=button], .legendtext"
"""Selector of a line's name on a chart."""
SIDEWAYS = "document.querySelector('[data-testid=stMain]').scrollWidth"
"""JavaScript that returns the width of the page's content; if it exceeds the window, the page scrolls sideways."""


def settle(page):
    """Wait until the script has ended and does not start again; some widgets report their value 150 ms later."""
    page.evaluate("window.since = undefined")
    # The page may wait for a worker, which runs only while a processor is idle. Other tests may use all processors for
    # minutes.
    page.wait_for_function(STILL, polling=50, timeout=180_000)


def visit(page, address, *, until=None):
    """Open an address and wait until its run has ended, or only until the text ``until`` is visible."""
    page.goto(address)
    if until is None:
        page.wait_for_selector('[data-testid="stApp"]')
        settle(page)
    else:
        expect(page.get_by_text(until)).to_be_visible(timeout=60_000)


def open_input(page):
    """Unfold the sidebar with the input, unless an earlier test has: the browser remembers it."""
    if page.get_by_test_id("stSidebar").get_attribute("data-collapsed") == "true":
        page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")


def query(page):
    """Return the query of the page's current address, without the question mark."""
    return re.sub(r"^[^?]*\??", "", page.url)


def words(page):
    """Return the set of query parameters, each as ``name=value``."""
    return {unquote(word) for word in query(page).split("&")}


def press(page, name):
    """Press the button with this name in the main area; Streamlit's header may have a button of the same name."""
    page.get_by_test_id("stMain").get_by_role("button", name=name).click()


def switch(page, name):
    """Click the element with this exact text and wait for the effect."""
    page.get_by_text(name, exact=True).first.click()
    settle(page)


def board(page, key=None):
    """Return the locator of a board that has been painted: the board with this key, or any matrix board."""
    return page.locator(f"{BOARD}[data-paints]" if key is None else f'[data-board="{key}"][data-paints]')


def values(found):
    """Return the values that the panels of a board, or of the whole page, show for the cell under the pointer."""
    return found.locator(".value").all_inner_texts()


def cell(found):
    """Return the row and column of the cell under the pointer."""
    return tuple(int(i) for i in found.get_attribute("data-cell").split(","))


def on(plot, across, down):
    """Return the point, in pixels of the window, at the fractions ``across`` and ``down`` of an element's size."""
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def point_at(plot, across, down):
    """Move the pointer to the point that ``on`` returns, and wait until the page has been painted again."""
    plot.page.mouse.move(*on(plot, across, down))
    plot.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def drawn(canvas):
    """Return the content of a canvas as a data URL, which tests compare."""
    return canvas.evaluate("(canvas) => canvas.toDataURL()")


def picture(found):
    """Return a screenshot of the element that the locator ``found`` finds, as an RGB image."""
    return Image.open(io.BytesIO(found.screenshot())).convert("RGB")


def pictures(found, parts):
    """Return a picture of each part that the selector ``parts`` finds in an element.

    They are cut from one screenshot, because a screenshot of each part takes half a second.
    """
    whole = picture(found)
    boxes = found.evaluate(
        """(whole, parts) => {
            const { left, top } = whole.getBoundingClientRect();
            const boxes = [...whole.querySelectorAll(parts)].map((part) => part.getBoundingClientRect());
            return boxes.map((box) => [box.left - left, box.top - top, box.right - left, box.bottom - top]);
        }""",
        parts,
    )
    return [whole.crop((math.floor(a), math.floor(b), math.ceil(c), math.ceil(d))) for a, b, c, d in boxes]


def counts(image):
    """Return all colours of an image, as pairs of the number of pixels and the colour."""
    return image.getcolors(image.width * image.height)  # There are at most as many colours as pixels.


def colours(image):
    """Return all colours of an image."""
    return {colour for _count, colour in counts(image)}


def darken(page, found):
    """Change to the dark theme and wait until the board ``found`` is drawn in it."""
    paints = found.get_attribute("data-paints")
    page.emulate_media(color_scheme="dark")
    expect(found).not_to_have_attribute("data-paints", paints)
    page.wait_for_timeout(300)


def chart(page):
    """Return the locator of the last chart."""
    return page.locator(".js-plotly-plot").last


def legend(page):
    """Return the names of the last chart's lines, which are written at the lines' ends or in a legend."""
    expect(chart(page).locator(NAMED).first).to_be_visible()
    return chart(page).evaluate("(plot) => plot.data.filter(({ showlegend }) => showlegend).map(({ name }) => name)")


def saved(page, button):
    """Return the path of the file that a button downloads; ``button`` is its name or a locator."""
    found = page.get_by_role("button", name=button) if isinstance(button, str) else button
    with page.expect_download() as waiting:
        found.click()
    return Path(waiting.value.path())


def rows(path):
    """Return the rows of a CSV file as dictionaries."""
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))


def arrays(path):
    """Return the arrays of an NPZ file by name."""
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
        return dict(found)
