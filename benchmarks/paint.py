"""Measures in Chromium how long each page of the app takes to load, and how long the server takes to start.

``python -m benchmarks.paint http://127.0.0.1:8501 --out benchmarks/PAINT.md``
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import BrowserContext, Playwright, sync_playwright
from tqdm import tqdm

from app.page import discover
from benchmarks.load.server import started
from benchmarks.load.tab import loopback
from benchmarks.machine import machine

QUIET = 1500
"""Milliseconds without a change after which a page is complete."""
COMPLETE = {"first": 1.0, "second": 0.5, "third": 0.5}
"""Seconds in which the pages of ``TARGET_PAGES`` should be complete, by visit."""
TARGET_PAGES = ("home", "matrices", "masks", "inside", "causal")
SHIFT = 0.1
"""Layout shift that every page should stay below."""
BROWSER = ("--no-sandbox", "--disable-gpu", "--disable-features=BackgroundResourceFetch")
"""Options of Chromium. With background fetches, its headless form never reads compiled code from its cache."""
FREE_PORT = 8599
"""Port of the servers that are started to measure their start."""
EMPTY_APPS = {
    "one title": "import streamlit as st\n\nst.title('Title')\n",
    "one chart": "import streamlit as st\n\nst.plotly_chart({'data': [{'type': 'heatmap', 'z': [[0, 1], [1, 0]]}]})\n",
}
"""Scripts of Streamlit apps that draw a single element; the time of these pages is a lower bound for every page."""
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
        if (!seen.start) this.addEventListener("message", () => (seen.answer = now()));
        seen.start ??= now();
        return send.call(this, message);
    }};
    const watch = (type, act) =>
        new PerformanceObserver((list) => list.getEntries().forEach(act)).observe({{ type, buffered: true }});
    watch("paint", ({{ name, startTime }}) => name === "first-contentful-paint" && (seen.content = startTime));
    watch("layout-shift", ({{ value }}) => (seen.shift += value));
    watch("longtask", ({{ duration }}) => (seen.busy += duration));
    window.done = () => seen.answer && now() - Math.max(seen.answer, seen.complete) > {QUIET};
}}"""
"""A script that notes milliseconds since navigation: first content, first request and last answer of the server, and
the last change of the page, also within components. It sums layout shifts and the main thread's tasks of over 50 ms."""


class Visit(NamedTuple):
    """The times of one visit to a page, in milliseconds since navigation, and its layout shift.

    Attributes:
        content: when the browser paints the first content.
        start: when the browser sends the first message over the websocket.
        answer: when the server's last message arrives.
        complete: when the page changes for the last time.
        shift: sum of all layout shifts.
        busy: summed duration of the main thread's long tasks, in milliseconds.
    """

    content: float
    start: float
    answer: float
    complete: float
    shift: float
    busy: float


class Start(NamedTuple):
    """Seconds that three things take: importing the library, starting the server, and the first visit to Home."""

    library: float
    server: float
    page: float


def visit(context: BrowserContext, address: str) -> Visit:
    """Open a page in a new tab and close it when it is complete."""
    page = context.new_page()
    page.goto(address, wait_until="commit", timeout=90_000)
    page.wait_for_function("() => window.done()", timeout=90_000)
    times = page.evaluate("seen")
    page.close()
    return Visit(*(times.get(name, float("nan")) for name in Visit._fields))


@contextmanager
def browser_context(playwright: Playwright) -> Iterator[BrowserContext]:
    """Start a browser that records its visits. It has a new profile, without which it caches no compiled code."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    settings = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        start = playwright.chromium.launch_persistent_context
        context = start(profile, executable_path=chromium, args=BROWSER, **settings)
        context.add_init_script(f"({WATCH})()")
        yield context
        context.close()


@contextmanager
def empty_apps() -> Iterator[dict[str, str]]:
    """Start the servers of ``EMPTY_APPS`` and yield their addresses."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        addresses = {}
        for place, (name, script) in enumerate(EMPTY_APPS.items(), 1):
            path = folder / f"app{place}.py"
            path.write_text(script, "utf-8")
            addresses[name] = f"http://127.0.0.1:{FREE_PORT + place}"
            command = f"streamlit run {path} --server.headless true --server.port {FREE_PORT + place}"
            stack.enter_context(started(command, addresses[name], folder / f"server{place}.log"))
        yield addresses


def visits(addresses: Mapping[str, str], rounds: int) -> Iterator[tuple[str, str, Visit]]:
    """Yield page, key of ``COMPLETE`` and visit for all visits. A first visit is that of a newly started browser."""
    with sync_playwright() as playwright:
        for _, (page, address) in tqdm([*product(range(rounds), addresses.items())]):
            with browser_context(playwright) as context:
                for ordinal in COMPLETE:
                    yield page, ordinal, visit(context, address)


def starts(rounds: int) -> Iterator[Start]:
    """Yield the times of new processes, with all files in the cache of the operating system."""
    address = f"http://127.0.0.1:{FREE_PORT}"
    command = "streamlit run app --server.headless true --server.port {port}"
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        for _ in tqdm(range(rounds)):
            times = [time.perf_counter()]
            subprocess.run([sys.executable, "-c", "import attention_core"], check=True)
            times.append(time.perf_counter())
            with started(command, address, Path(folder) / "server.log"), browser_context(playwright) as context:
                times.append(time.perf_counter())
                page = visit(context, address)
            yield Start(times[1] - times[0], times[2] - times[1], page.complete / 1000)


def middle(visits: Sequence[tuple[str, str, Visit]], page: str, ordinal: str) -> Visit:
    """Return the medians of a page's first, second or third visits."""
    own = [visit for *key, visit in visits if key == [page, ordinal]]
    return Visit(*(statistics.median(column) for column in zip(*own, strict=True)))


def report(visits: Sequence[tuple[str, str, Visit]], starts: Sequence[Start], rounds: int) -> str:
    """Return the record as Markdown: the targets, medians by page with quartiles, and the start of a server."""
    kinds = list(dict.fromkeys((page, ordinal) for page, ordinal, _ in visits))
    lines = [
        "# First paint",
        "",
        "Written by `python -m benchmarks.paint`. Each page is opened at 1280 × 720 in Chromium, on the machine that",
        "also runs the warm server. A first visit is that of a newly started browser. Later visits open the page again",
        "in a new tab. A browser caches compiled scripts on the second visit and reads them from the third visit on.",
        f"Cells are medians of {rounds} visits in seconds since navigation, with quartiles. The last two pages are",
        f"those of other apps: each calls Streamlit once, to draw {' or '.join(EMPTY_APPS)}.",
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
    for page, ordinal in kinds:
        median = middle(visits, page, ordinal)
        low, _, high = statistics.quantiles([each.complete for *key, each in visits if key == [page, ordinal]], n=4)
        times = [f"{value / 1000:.2f}" for value in (median.content, median.start, median.answer)]
        complete = f"**{median.complete / 1000:.2f}** ({low / 1000:.2f}–{high / 1000:.2f})"
        cells = [page, ordinal, *times, complete, f"{median.busy / 1000:.2f}", f"{median.shift:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_targets(visits, kinds), "", *_start_up(starts), ""])


def _targets(visits: Sequence[tuple[str, str, Visit]], kinds: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield "## Targets"
    yield ""
    yield "The last columns divide the time: the wait for the server's last message, and the browser's work after it."
    yield "The columns of the smallest possible apps, measured in the same rounds, show how much of it Streamlit takes."
    yield ""
    yield f"| page | visit | target | complete | result | until the answer | after it | {' | '.join(EMPTY_APPS)} |"
    yield f"| --- | --- | ---: | ---: | --- | ---: | ---: | {' | '.join('---:' for _ in EMPTY_APPS)} |"
    for page, ordinal in kinds:
        if page in TARGET_PAGES:
            median, target = middle(visits, page, ordinal), COMPLETE[ordinal]
            result = "met" if median.complete <= 1000 * target else "missed"
            answer = min(median.answer, median.complete)
            parts = f"{answer / 1000:.2f} | {(median.complete - answer) / 1000:.2f}"
            bounds = " | ".join(f"{middle(visits, each, ordinal).complete / 1000:.2f}" for each in EMPTY_APPS)
            complete = f"{median.complete / 1000:.2f}"
            yield f"| {page} | {ordinal} | ≤ {target:.1f} | {complete} | {result} | {parts} | {bounds} |"
    yield ""
    high = [
        f"{page} ({shift:.2f})" for page, ordinal in kinds if (shift := middle(visits, page, ordinal).shift) >= SHIFT
    ]
    yield f"Layout shift below {SHIFT} on every page: {'missed on ' * bool(high)}{', '.join(high) or 'met'}."


def _start_up(starts: Sequence[Start]) -> Iterator[str]:
    yield "## Start of a server"
    yield ""
    yield f"Medians of {len(starts)} new processes in seconds, with all files in the cache of the operating system."
    yield ""
    yield "| `import attention_core` | `streamlit run app` until healthy | Home, complete on the new server |"
    yield "| ---: | ---: | ---: |"
    yield f"| {' | '.join(f'{statistics.median(column):.2f}' for column in zip(*starts, strict=True))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Open the pages and write the record."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paint", description="Measure the time from navigation to the whole page."
    )
    parser.add_argument("server", help="address of a running server of this machine")
    parser.add_argument("--pages", nargs="+", default=list(discover()), choices=list(discover()))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--starts", type=int, default=3, help="servers to start (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "PAINT.md")
    options = parser.parse_args(arguments)
    loopback(options.server)
    addresses = {page: f"{options.server}/{'' if page == 'home' else page}" for page in options.pages}
    with empty_apps() as empty:
        results = [*visits(addresses | empty, options.rounds)]
    options.out.write_text(report(results, [*starts(options.starts)], options.rounds), "utf-8")


if __name__ == "__main__":
    main()
