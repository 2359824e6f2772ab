"""Fixtures for all browser tests: one running server of the app, one Chromium browser, and pages in it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parent.parent.parent
expect.set_options(timeout=60_000)  # Other processes may keep the machine busy.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
"""Commands of browsers, the preferred one first: unlike the others, it opens no windows."""
STILL = {"reduced_motion": "reduce"}
"""Options of a browser context without decorative animations, which would use CPU time all the time."""
WIDE = {"viewport": {"width": 1400, "height": 1000}, **STILL}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
    **STILL,
}


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here == item.path.parent:
            item.add_marker(pytest.mark.e2e)
            # On a busy machine, a browser may react too late, so a failed test runs a second time. pytest's summary
            # lists these tests.
            item.add_marker(pytest.mark.flaky(reruns=1))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(script, port, folder, cwd=ROOT, **how):
    """Start ``streamlit run`` by its console script, as in the README, and wait until the server is healthy."""
    command = [str(Path(sys.executable).parent / "streamlit"), "run", str(script), f"--server.port={port}"]
    return serve([*command, "--server.headless=true", "--server.address=127.0.0.1"], port, folder, cwd=cwd, **how)


def serve(command, port, folder, *, health="_stcore/health", **how):
    """Start a server and wait until it is healthy: until it answers at the path ``health``."""
    log = folder / "streamlit.log"
    environment = {name: value for name, value in how.pop("env", os.environ).items() if name != "ATTENTION_LAB_WORKERS"}
    process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, env=environment, **how)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/{health}", timeout=2)
            return process
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if process.poll() is not None:
                break
            time.sleep(0.2)
    process.kill()
    raise RuntimeError(log.read_text())


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Yield the app's address. The first pytest worker that needs the app starts it, and the last worker stops it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # All test processes share this folder.
    kept, lock = folder / "server.json", FileLock(folder / "server.lock")
    with lock:
        running = json.loads(kept.read_text()) if kept.exists() else {"port": free_port(), "users": 0}
        if not running["users"]:
            running["pid"] = start("app", running["port"], folder).pid
        running["users"] += 1
        kept.write_text(json.dumps(running))
    yield f"http://127.0.0.1:{running['port']}"
    with lock:
        running = json.loads(kept.read_text())
        running["users"] -= 1
        kept.write_text(json.dumps(running))
        if not running["users"]:
            os.kill(running["pid"], signal.SIGTERM)


@pytest.fixture(scope="session")
def chromium():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path, "The browser tests need Chromium: apt-get install chromium-headless-shell"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def window(chromium):
    """Return a browser context that caches what its pages have loaded."""
    return listening(chromium.new_context(**WIDE))


@pytest.fixture
def page(window):
    """Yield a page 1400 pixels wide, always in the same tab, so that the scripts are parsed only once."""
    page = tab(window)
    page.set_viewport_size(WIDE["viewport"])
    page.emulate_media(color_scheme="light")
    yield from watched(page)


@pytest.fixture
def newly_opened(window):
    """Yield a page in a new tab without history; a test may change its viewport and media settings."""
    page = window.new_page()
    yield from watched(page)
    page.close()


@pytest.fixture(scope="session")
def other_context(chromium):
    """Return a second browser context, which keeps nothing between tests except cached scripts."""
    context = listening(chromium.new_context(**WIDE))
    context.add_init_script("if (location.host) for (const kept of [localStorage, sessionStorage]) kept.clear();")
    return context


@pytest.fixture
def other_page(other_context):
    """Yield a page of another browser context, which shares no storage with ``page``."""
    other_context.clear_cookies()
    yield from watched(tab(other_context))


@pytest.fixture(scope="session")
def phone_context(chromium):
    """Return the browser context of a phone."""
    return listening(chromium.new_context(**PHONE))


@pytest.fixture
def phone(phone_context):
    """Yield a page of a phone."""
    yield from watched(tab(phone_context))


def tab(context):
    """Return the tab of a context, or open its first one; a new tab would have to parse every script again."""
    return next(iter(context.pages), None) or context.new_page()


def listening(context):
    """Return the context, whose pages now record unanswered requests for ``settle``.

    ``window.asked`` is the time at which a page sent the last request, or undefined once the server has answered.
    """
    context.set_default_timeout(60_000)
    context.add_init_script(
        """const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (message) {
            if (!this.watched) this.addEventListener("message", () => (window.asked = undefined));
            this.watched = true;
            window.asked = performance.now();
            return send.call(this, message);
        };"""
    )
    return context


def watched(page):
    """Yield a page that fails its test if the browser or the app reports an error; the page is empty afterwards."""
    errors = []

    def on_console(message):
        if message.type == "error":
            errors.append(message.text)

    def failed(error):
        errors.append(str(error))

    page.on("pageerror", failed)
    page.on("console", on_console)
    yield page
    shown = page.get_by_test_id("stException").all_inner_texts()
    page.goto("about:blank")
    page.remove_listener("pageerror", failed)
    page.remove_listener("console", on_console)
    assert not errors
    assert not shown
