"""One running app and one Chromium for all browser tests."""

import re
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
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(script, port, folder):
    """Start ``streamlit run`` by its console script, as the README does, and wait until it is healthy."""
    command = [str(Path(sys.executable).parent / "streamlit"), "run", str(script), f"--server.port={port}"]
    return serve([*command, "--server.headless=true", "--server.address=127.0.0.1"], port, folder, cwd=ROOT)


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
    path = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    assert path, "The browser tests need Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A page 1400 wide that fails its test if the browser or the app reports an error."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
    yield page
    shown = page.get_by_test_id("stException").all_inner_texts()
    context.close()
    assert not errors
    assert not shown


def is_error(message):
    # Streamlit probes its health addresses below the page's own path first, and a deep link answers those with 404.
    return message.type == "error" and "/_stcore/" not in str(message.location) and "404" not in message.text


def settle(page, timeout=30_000):
    """Wait until the script has ended and stays so."""
    app = page.get_by_test_id("stApp")
    for _ in range(2):
        expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=timeout)
        expect(app).to_have_attribute("data-test-connection-state", "CONNECTED", timeout=timeout)
        page.wait_for_timeout(150)


def visit(page, address):
    """Open an address and wait until it is drawn."""
    page.goto(address)
    page.wait_for_selector('[data-testid="stApp"]')
    settle(page)


def query(page):
    """The address's query as it stands now."""
    return re.sub(r"^[^?]*\??", "", page.url)
