"""Any page in Chromium: how it is opened, waited for, read, and what it hands out."""

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
"""The matrix board where there is one; several are told apart by ``[data-board]``."""
STILL = """() => {
    const { testScriptState, testConnectionState } = document.querySelector("[data-testid=stApp]")?.dataset ?? {};
    const now = performance.now();
    const owed = now - (window.asked ?? -Infinity) < 5000; // what was asked for is answered before it starts
    const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
    const unpainted = (host) => host.offsetWidth && host.shadowRoot?.querySelector(".board:not([data-paints])");
    // A browser's first visit ends before the scripts have come that draw what it shows.
    const coming = document.querySelector("[data-testid=stSkeleton]") || hosts.some(unpainted);
    const running = testScriptState !== "notRunning" || testConnectionState !== "CONNECTED";
    if (running || owed || coming) window.since = undefined;
    else window.since ??= now;
    return now - (window.since ?? now) >= 300;
}"""
"""Whether nothing has run for a while, and all that has come is drawn."""
NAMED = ".annotation[role=button], .legendtext"
"""What a line is called on a chart."""
SIDEWAYS = "document.querySelector('[data-testid=stMain]').scrollWidth"
"""How wide what a page shows is; more than the window, and it scrolls sideways."""


def settle(page):
    """Wait until the script has ended and stays so: some widgets tell what they are set to 150 ms later."""
    page.evaluate("window.since = undefined")
    page.wait_for_function(STILL, polling=50)


def visit(page, address, *, until=None):
    """Open an address and wait until it is drawn, or in the midst of a run until this is seen."""
    page.goto(address)
    if until is None:
        page.wait_for_selector('[data-testid="stApp"]')
        settle(page)
    else:
        expect(page.get_by_text(until)).to_be_visible(timeout=60_000)


def query(page):
    """The address's query as it stands now."""
    return re.sub(r"^[^?]*\??", "", page.url)


def words(page):
    """The words of the query, each a value's name and its value."""
    return {unquote(word) for word in query(page).split("&")}


def press(page, name):
    """Press a button of the page itself and wait for what follows: the head has a Stop of its own."""
    page.get_by_test_id("stMain").get_by_role("button", name=name).click()


def switch(page, name):
    """Choose by its words what is chosen by them, and wait for what follows."""
    page.get_by_text(name, exact=True).first.click()
    settle(page)


def board(page, key=None):
    """A board that is drawn."""
    return page.locator(f"{BOARD}[data-paints]" if key is None else f'[data-board="{key}"][data-paints]')


def values(found):
    """What the panels of a board, or of the page's only one, tell of the cell pointed at."""
    return found.locator(".value").all_inner_texts()


def cell(found):
    """A board's cell pointed at: its row and its column."""
    return tuple(int(i) for i in found.get_attribute("data-cell").split(","))


def on(plot, across, down):
    """A point of a drawing, in shares of its sides."""
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def point_at(plot, across, down):
    """Point at a place of a drawing and wait until the board has answered."""
    plot.page.mouse.move(*on(plot, across, down))
    plot.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def drawn(canvas):
    """What is drawn on a canvas, as it can be compared."""
    return canvas.evaluate("(canvas) => canvas.toDataURL()")


def picture(found):
    """An element as it stands on screen."""
    return Image.open(io.BytesIO(found.screenshot())).convert("RGB")


def pictures(found, parts):
    """Pictures of the parts of an element, by a selector, cut from one screenshot: one of each takes half a second."""
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


def colours(image):
    """All colours of a picture."""
    return {colour for _count, colour in image.getcolors(maxcolors=2**24)}


def darken(page, found):
    """Change over to the dark theme and wait until a board is drawn in it."""
    paints = found.get_attribute("data-paints")
    page.emulate_media(color_scheme="dark")
    expect(found).not_to_have_attribute("data-paints", paints)
    page.wait_for_timeout(300)


def chart(page):
    """The last chart."""
    return page.locator(".js-plotly-plot").last


def legend(page):
    """What the last chart's lines are called, at their ends or in a legend."""
    expect(chart(page).locator(NAMED).first).to_be_visible()
    return chart(page).evaluate("(plot) => plot.data.filter(({ showlegend }) => showlegend).map(({ name }) => name)")


def saved(page, button):
    """A file that a button, or an element that acts as one, hands out."""
    found = page.get_by_role("button", name=button) if isinstance(button, str) else button
    with page.expect_download() as waiting:
        found.click()
    return Path(waiting.value.path())


def rows(path):
    """The rows of a CSV file by the names of its columns."""
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))


def arrays(path):
    """The arrays of an NPZ file by their names."""
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
        return dict(found)
