"""Tests that every CSS selector of Streamlit's own elements matches an element, because an update may rename them."""

import re
import secrets
from pathlib import Path

from browser import visit

FOLDER = Path(__file__).parents[2] / "app" / "page_script"
SCRIPT = (FOLDER / "selectors.js").read_text("utf-8")
STYLES = (FOLDER / "style.css").read_text("utf-8")
STREAMLIT = r"\[data-testid=\"(st\w+)\"\]|\.(st[A-Z]\w*)"
RECORD = """
    window.seen = new Set();
    const record = ({ dataset, classList }) => {
        if (dataset.testid) seen.add(dataset.testid);
        for (const name of classList) seen.add(name);
    };
    const collect = (node) => {
        if (!(node instanceof HTMLElement)) return;
        record(node);
        node.querySelectorAll("*").forEach((each) => each instanceof HTMLElement && record(each));
    };
    new MutationObserver((changes) => {
        for (const { addedNodes } of changes) addedNodes.forEach(collect);
    }).observe(document, { childList: true, subtree: true });
"""
"""A script that records the test ids and classes of all elements, as placeholders are on the page only for a moment."""
PAGES = (
    (1280, ""),
    (1280, "matrices?lesson=flat&more=explain"),
    (1280, "matrices?more=numbers"),
    (1280, "masks?masks_part=numbers"),
    (
        390,
        f"error?input=synthetic&n=512&heads=12&seed={secrets.randbelow(2**31)}",
    ),  # With a random seed, no result is cached, so that a run is visible.
    (1280, "claims"),
)
"""Widths of the window, and addresses."""


def exported():
    """Return the selectors that the scripts use, by name."""
    found = re.findall(r"^export const (\w+) =\s*(['\"`])(.*)\2;$", SCRIPT, re.MULTILINE)
    return {name: words for name, _quote, words in found if "[" in words}


def ids_and_classes(*sources):
    """Return Streamlit's test ids and classes in the sources."""
    return {name for source in sources for pair in re.findall(STREAMLIT, source) for name in pair if name}


def test_every_selector_of_streamlits_elements_matches_something(newly_opened, server):
    page = newly_opened
    page.add_init_script(RECORD)
    seen, missing = set(), exported()
    assert len(missing) > 5
    for width, path in PAGES:
        page.set_viewport_size({"width": width, "height": 800})
        visit(page, f"{server}/{path}")
        seen |= set(page.evaluate("[...seen]"))
        missing = {name: each for name, each in missing.items() if not page.locator(each).count()}
    assert not missing
    unseen = ids_and_classes(STYLES, SCRIPT) - seen
    assert not unseen, sorted(unseen)
    assert page.locator("[data-test-connection-state=CONNECTED]").count()


def test_only_one_script_and_one_style_sheet_name_streamlits_elements():
    app = FOLDER.parent
    files = {
        path for pattern in ("*.js", "*.css") for path in app.rglob(pattern) if ids_and_classes(path.read_text("utf-8"))
    }
    assert files == {FOLDER / "selectors.js", FOLDER / "style.css"}
