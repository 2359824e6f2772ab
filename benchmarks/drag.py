"""Measures in Chromium how long the app takes to redraw while a slider is dragged, on the Matrices or the Home page.

``python -m benchmarks.drag http://127.0.0.1:8501 --pid <the server's> --panel local nystrom`` measures the panels of
these variants on Matrices; ``--home`` measures the live sentence on Home.
"""

import argparse
import math
import os
import shutil
import statistics
import time
from collections.abc import Sequence

from playwright.sync_api import Page, sync_playwright

from benchmarks.load.server import clocks
from benchmarks.load.tab import loopback

AT = "input=synthetic&n=256&heads=2&variants=softmax&variants=local&variants=linear&variants=nystrom"
"""Query string of a page with four panels of 256 tokens."""
WATCH = """(knob) => {
    const [slider, board] = [knob.querySelector("input"), knob.closest(".board")];
    window.waits = [];
    const moved = new Map();
    slider.addEventListener("input", () => moved.set(slider.getAttribute("aria-valuetext"), performance.now()));
    new MutationObserver(() => {
        const began = moved.get(knob.dataset.shown);
        moved.delete(knob.dataset.shown);
        requestAnimationFrame(() => setTimeout(() => began && waits.push(performance.now() - began)));
    }).observe(board, { attributes: true, attributeFilter: ["data-paints"] });
}"""


HOME = """(row) => {
    window.waits = [];
    row.querySelector("input").addEventListener("input", () => {
        const began = performance.now();
        requestAnimationFrame(() => setTimeout(() => waits.push(performance.now() - began)));
    });
}"""
"""A script for Home, where a row is redrawn before the next frame, without an answer of the server."""


def drag(page: Page, part: str, watch: str, seconds: float) -> list[float]:
    """Drag a slider back and forth, and return the milliseconds from move to paint of each painted value."""
    knob = page.locator(part)
    knob.evaluate(watch)
    place = knob.locator("input").bounding_box()
    assert place is not None
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    start = time.monotonic()
    while (gone := time.monotonic() - start) < seconds:
        page.mouse.move(x - 0.4 * place["width"] * math.cos(gone), y)
        page.mouse.down()
        page.wait_for_timeout(16)
    page.mouse.up()
    page.wait_for_timeout(1000)
    return sorted(page.evaluate("waits"))


def cpu_seconds(server: Sequence[int]) -> tuple[float, float]:
    """Return the CPU seconds so far of the server, and of the browser with its driver."""
    return sum(clocks(server).values()), sum(clocks([os.getpid()]).values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Drag each panel's slider and print the results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drag", description="Measure the time from drag to paint."
    )
    parser.add_argument("server", help="address of a running server of this machine")
    parser.add_argument(
        "--pid", type=int, nargs="*", default=[], help="process ids of the server, to measure its CPU time"
    )
    parser.add_argument("--panel", nargs="+", default=["local", "nystrom"])
    parser.add_argument("--home", action="store_true", help="drag on Home instead of Matrices")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    loopback(options.server)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{options.server}/{'' if options.home else f'matrices?{AT}'}", wait_until="commit", timeout=90_000)
        page.locator("[data-variant] input" if options.home else ".board:not(.thumbnails)[data-paints]").first.wait_for(
            timeout=90_000
        )
        page.wait_for_timeout(2000)
        for panel in options.panel:
            before = cpu_seconds(options.pid)
            place = f'[data-variant="{panel}"]' if options.home else f'[data-panel="{panel}"] .knob'
            waits = drag(page, place, HOME if options.home else WATCH, options.seconds)
            server_time, browser_time = (
                1000 * (now - earlier) / len(waits)
                for now, earlier in zip(cpu_seconds(options.pid), before, strict=True)
            )
            middle, late = statistics.median(waits), waits[math.ceil(0.95 * len(waits)) - 1]
            print(
                f"{panel}: {len(waits) / options.seconds:.1f} pictures a second, p50 {middle:.0f} ms, p95 {late:.0f} ms"
            )
            print(f"CPU milliseconds a picture: {server_time:.0f} of the server, {browser_time:.0f} of the browser")
        browser.close()


if __name__ == "__main__":
    main()
