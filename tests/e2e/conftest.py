"""One running app and one Chromium for all browser tests."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parent.parent.parent
expect.set_options(timeout=10_000)  # others may be at work on the machine
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
"""The first is the one without a window of its own, which each page would open anew."""
WIDE = {"viewport": {"width": 1400, "height": 1000}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(script, port, folder, cwd=ROOT):
    """Start ``streamlit run`` by its console script, as the README does, and wait until it is healthy."""
    command = [str(Path(sys.executable).parent / "streamlit"), "run", str(script), f"--server.port={port}"]
    return serve([*command, "--server.headless=true", "--server.address=127.0.0.1"], port, folder, cwd=cwd)


def serve(command, port, folder, **how):
    """Start a server and wait until it is healthy."""
    log = folder / "streamlit.log"
    process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, **how)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2)
            return process
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if process.poll() is not None:
                break
            time.sleep(0.2)
    process.kill()
    raise RuntimeError(log.read_text())


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    port = free_port()
    process = start("app", port, tmp_path_factory.mktemp("server"))
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


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
    """Where pages open that keep what the browser has loaded once."""
    return listening(chromium.new_context(**WIDE))


@pytest.fixture
def page(window):
    """A page 1400 wide."""
    yield from watched(window.new_page())


@pytest.fixture
def elsewhere(chromium):
    """A page of another browser, which has seen nothing yet."""
    context = listening(chromium.new_context(**WIDE))
    yield from watched(context.new_page())
    context.close()


@pytest.fixture
def phone(chromium):
    """A page of a phone."""
    context = listening(chromium.new_context(**PHONE))
    yield from watched(context.new_page())
    context.close()


def listening(context):
    """A context whose pages know when the server owes them an answer, for ``settle``."""
    context.set_default_timeout(60_000)
    context.add_init_script(
        """const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (message) {
            if (!this.heard) this.addEventListener("message", () => (window.asked = undefined));
            this.heard = true;
            window.asked = performance.now();
            return send.call(this, message);
        };"""
    )
    return context


def watched(page):
    """A page that fails its test if the browser or the app reports an error."""
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
    yield page
    shown = page.get_by_test_id("stException").all_inner_texts()
    page.close()
    assert not errors
    assert not shown


def is_error(message):
    # Streamlit probes its health addresses below the page's own path first, and a deep link answers those with 404.
    return message.type == "error" and "/_stcore/" not in str(message.location) and "404" not in message.text
