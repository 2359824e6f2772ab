"""Browser tests of layout shift: elements that are already drawn do not move while the rest of a page loads."""

import re
import time

import pytest
from browser import FORGET, press, visit
from playwright.sync_api import expect

GOOD = 0.1
"""Layout shift up to which loading is rated good (web.dev, Cumulative Layout Shift)."""
UNCHECKED = f"claims?input=synthetic&n=128&heads=12&seed={time.time_ns() % 2**31}"
"""A page of claims on a new input, which the server checks while the page loads."""
SHIFTS = """{
    window.shift = 0;
    let sum = 0, first = 0, last = -Infinity;
    new PerformanceObserver((list) => {
        for (const { value, startTime } of list.getEntries()) {
            if (startTime - last > 1000 || startTime - first > 5000) [sum, first] = [0, startTime];
            [sum, last] = [sum + value, startTime];
            window.shift = Math.max(window.shift, sum);
        }
    }).observe({ type: "layout-shift", buffered: true });
}"""
"""A script that measures the shift as web.dev defines it: the largest sum within 5 s, with pauses of at most 1 s."""
EDGES = """{
    window.edges = new Set();
    const look = () => {
        const column = document.querySelector("[data-testid=stMain]");
        const block = document.querySelector("[data-testid=stMainBlockContainer]");
        if (block) {
            const place = column.getBoundingClientRect().left;
            window.edges.add(`${Math.round(place)} ${getComputedStyle(block).padding}`);
        }
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
"""A script that records, in each frame, the left edge of the main column and its padding."""
COLUMNS = ("masks", "entropy", "timing")
"""Pages on which the edges of the main column are recorded."""
PAGES = [
    "",
    "matrices",
    "matrices?variants=softmax",
    "masks",
    "inside",
    "lessons",
    "entropy",
    "error",
    "timing",
    "model",
    "causal",
    "claims",
    pytest.param(UNCHECKED, id="claims on a new input"),
]


@pytest.mark.parametrize("path", PAGES)
def test_a_loading_page_has_little_layout_shift(newly_opened, server, path):
    page = newly_opened
    page.set_viewport_size({"width": 1280, "height": 720})
    page.add_init_script(FORGET)  # Other tabs of this browser may have opened the sidebar, which would stay open.
    page.add_init_script(SHIFTS)
    if path in COLUMNS:
        page.add_init_script(EDGES)
    visit(page, f"{server}/{path}")
    assert path not in COLUMNS or page.evaluate("[...window.edges]") == ["0 56px 40px 48px"]
    assert page.evaluate("window.shift") < GOOD


@pytest.mark.parametrize("path", ["", "lessons", "model"])
def test_a_loading_page_has_little_layout_shift_on_a_phone(newly_opened, server, path):
    newly_opened.set_viewport_size({"width": 390, "height": 844})
    newly_opened.add_init_script(SHIFTS)
    visit(newly_opened, f"{server}/{path}")
    assert newly_opened.evaluate("window.shift") < GOOD


def test_the_sentence_about_a_run_has_its_full_width_before_the_progress_bar_goes_away(page, server):
    """Check that the words of a sentence do not move between lines, which browsers count as a large shift."""
    page.set_viewport_size({"width": 1280, "height": 720})
    visit(
        page, f"{server}/entropy?input=synthetic&h_longest=4096&h_seeds=4", until=re.compile("attention spreads over")
    )
    expect(page.get_by_test_id("stProgress")).to_be_visible()
    # The sentence changes during the run, so the sizes of all elements are read at the same time.
    parts = ("[class*=st-key-headline-entropy]", "[data-testid=stProgress]", "[data-testid=stMainBlockContainer] > div")
    sentence, bar, column = page.evaluate(
        "(parts) => parts.map((part) => document.querySelector(part).getBoundingClientRect().toJSON())", parts
    )
    assert sentence["width"] == column["width"]
    assert sentence["bottom"] <= bar["top"]
    press(page, "Stop")
