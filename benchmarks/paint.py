"""First paint in Chromium: the time from navigation until each page is complete, on a first visit and on a second.

``python -m benchmarks.paint http://127.0.0.1:8501 --out benchmarks/PAINT.md``
"""

import argparse
import shutil
import statistics
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import BrowserContext, sync_playwright
from tqdm import tqdm

from app.page import discover
from benchmarks.load.tab import loopback
from benchmarks.machine import machine

QUIET = 1500
"""Milliseconds without a change after which a page is complete."""
WATCH = f"""() => {{
    const seen = (window.seen = {{ shift: 0, busy: 0, messages: 0 }});
    const now = () => performance.now();
    const changed = new MutationObserver(() => (seen.complete = now()));
    const everything = {{ subtree: true, childList: true, attributes: true, characterData: true }};
    changed.observe(document, everything);
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (how) {{
        const root = attach.call(this, how);
        changed.observe(root, everything);
        return root;
    }};
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (message) {{
        if (!seen.asked) this.addEventListener("message", () => (seen.answered = now()));
        seen.asked ??= now();
        return send.call(this, message);
    }};
    const watch = (type, act) =>
        new PerformanceObserver((list) => list.getEntries().forEach(act)).observe({{ type, buffered: true }});
    watch("paint", ({{ name, startTime }}) => name === "first-contentful-paint" && (seen.content = startTime));
    watch("layout-shift", ({{ value }}) => (seen.shift += value));
    watch("longtask", ({{ duration }}) => (seen.busy += duration));
    window.done = () => seen.answered && now() - Math.max(seen.answered, seen.complete) > {QUIET};
}}"""
"""A script that notes milliseconds since navigation: first content, first request and last answer of the server, and
the last change of the page, also within components. It sums layout shifts and the main thread's tasks of over 50 ms."""


class Visit(NamedTuple):
    """One visit to a page: milliseconds since navigation, the summed layout shift, and milliseconds of long tasks."""

    content: float
    asked: float
    answered: float
    complete: float
    shift: float
    busy: float


def visit(context: BrowserContext, address: str) -> Visit:
    """Open a page in a new tab and close it when it is complete."""
    page = context.new_page()
    page.goto(address, wait_until="commit", timeout=90_000)
    page.wait_for_function("() => window.done()", timeout=90_000)
    seen = page.evaluate("seen")
    page.close()
    return Visit(*(seen.get(name, float("nan")) for name in Visit._fields))


def visits(server: str, pages: Sequence[str], rounds: int) -> Iterator[tuple[str, str, Visit]]:
    """Yield the page, "first" or "second", and the visit. A first visit is that of a newly started browser."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        for _, page in tqdm([*product(range(rounds), pages)]):
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
            context.add_init_script(f"({WATCH})()")
            for which in ("first", "second"):
                yield page, which, visit(context, f"{server}/{'' if page == 'home' else page}")
            browser.close()


def report(found: Sequence[tuple[str, str, Visit]], rounds: int) -> str:
    """Return the record as Markdown: medians by page, and quartiles of the time until the page is complete."""
    lines = [
        "# First paint",
        "",
        "Written by `python -m benchmarks.paint`. Each page is opened at 1280 × 720 in Chromium, on the machine that",
        "also runs the warm server. A first visit is that of a newly started browser. A second visit opens the page",
        f"again in a new tab. Cells are medians of {rounds} visits in seconds since navigation, with quartiles.",
        "",
        "- **Content**: the first text is painted.",
        "- **Start**: Streamlit's scripts are loaded and send the first request.",
        "- **Answer**: the server's last message has arrived.",
        f"- **Complete**: the last change of the page, which {QUIET / 1000:g} s without a change follow.",
        "- **Busy**: sum of the main thread's tasks of over 50 ms. **Shift**: sum of the layout shifts.",
        "",
        *(f"{name}: {value}  " for name, value in machine().items()),
        "",
        "| page | visit | content | start | answer | complete | busy | shift |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for page, which in dict.fromkeys((page, which) for page, which, _ in found):
        own = [visit for at, kind, visit in found if (at, kind) == (page, which)]
        middle = Visit(*(statistics.median(column) for column in zip(*own, strict=True)))
        low, _, high = statistics.quantiles([each.complete for each in own], n=4)
        times = [f"{value / 1000:.2f}" for value in (middle.content, middle.asked, middle.answered)]
        complete = f"**{middle.complete / 1000:.2f}** ({low / 1000:.2f}–{high / 1000:.2f})"
        cells = [page, which, *times, complete, f"{middle.busy / 1000:.2f}", f"{middle.shift:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    """Open the pages and write the record."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paint", description="From navigation to the whole page."
    )
    parser.add_argument("server", help="its address, on this machine")
    parser.add_argument("--pages", nargs="+", default=list(discover()), choices=list(discover()))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "PAINT.md")
    given = parser.parse_args(arguments)
    loopback(given.server)
    given.out.write_text(report([*visits(given.server, given.pages, given.rounds)], given.rounds), "utf-8")


if __name__ == "__main__":
    main()
