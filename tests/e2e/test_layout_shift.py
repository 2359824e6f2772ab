"""Browser tests of loading: elements do not move once drawn, and the first HTML page names every script to load."""

import re

import pytest
from browser import FORGET, visit

POOR = 0.25
"""Layout shift above which loading is rated poor (web.dev, Cumulative Layout Shift)."""
GOOD = 0.1
"""Layout shift up to which loading is rated good."""
STEADY = ("", "matrices", "masks", "inside", "model", "picture")
"""Pages that reserve the space of their boards."""
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
    "picture",
    "inside",
    "lessons",
    "entropy",
    "error",
    "timing",
    "model",
    "causal",
    "claims",
]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_loads_hardly_moves(newly_opened, server, path):
    page = newly_opened
    page.set_viewport_size({"width": 1280, "height": 720})
    page.add_init_script(FORGET)  # Other tabs of this browser may have opened the input panel.
    page.add_init_script(SHIFTS)
    if path in COLUMNS:
        page.add_init_script(EDGES)
    visit(page, f"{server}/{path}")
    assert path not in COLUMNS or page.evaluate("[...window.edges]") == ["0 56px 40px 48px"]
    assert page.evaluate("window.shift") < (GOOD if path in STEADY else POOR)


@pytest.mark.parametrize("path", ["", "inside", "causal", "model"])
def test_the_first_html_page_names_every_script(newly_opened, server, path):
    page = newly_opened
    visit(page, f"{server}/{path}")
    html = page.request.get(f"{server}/{path}", headers={"Accept": "text/html"}).text()
    loaded = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    names = {name.rpartition("/")[2] for name in loaded if re.search(r"/static/js/[^/]*\.js$", name)}
    assert len(names) > 50
    assert names <= {*re.findall(r"/static/js/([^\"/]*\.js)", html)}
    assert page.locator("link[rel=later]").count() == 0
