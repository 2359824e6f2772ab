"""Tests of the record of first paints: medians and quartiles by page, and what one visit in Chromium notes."""

import http.server
import shutil
import threading

import pytest
from playwright.sync_api import sync_playwright

from benchmarks import paint
from benchmarks.paint import Visit

PAGE = b"""<!doctype html><p id="text">Text</p><script>
    const socket = new WebSocket(`ws://${location.host}/`);
    try { socket.send("early"); } catch {}
    setTimeout(() => (text.textContent = "late"), 400);
    setTimeout(() => socket.dispatchEvent(new MessageEvent("message")), 200);
</script>"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *given):
        pass


def test_the_record_has_medians_and_quartiles_of_each_page_and_visit():
    found = [("home", "first", Visit(100, 200, 300, complete, 0.01, 50)) for complete in (1000, 2000, 9000)]
    found += [("home", "second", Visit(100, 200, 300, 500, 0, 0))] * 3
    first, second = paint.report(found, rounds=3).splitlines()[-2:]
    assert first == "| home | first | 0.10 | 0.20 | 0.30 | **2.00** (1.00–9.00) | 0.05 | 0.010 |"
    assert "| second |" in second
    assert "**0.50** (0.50–0.50)" in second


@pytest.mark.e2e
def test_a_visit_lasts_until_the_last_change(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context()
        context.add_init_script(f"({paint.WATCH})()")
        seen = paint.visit(context, f"http://127.0.0.1:{server.server_port}/")
        browser.close()
    server.shutdown()
    assert seen.asked < seen.answered < seen.complete
    assert seen.answered >= 200
    assert 400 <= seen.complete < seen.answered + paint.QUIET
