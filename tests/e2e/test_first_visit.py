"""A browser test of ``benchmarks.paint``, which measures how long a first visit takes until the page stops changing."""

import http.server
import threading

from benchmarks import paint

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


def test_a_visit_lasts_until_the_last_change(chromium):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = chromium.new_context()
    context.add_init_script(f"({paint.WATCH})()")
    seen = paint.visit(context, f"http://127.0.0.1:{server.server_port}/")
    context.close()
    server.shutdown()
    assert seen.start < seen.answer < seen.complete
    assert seen.answer >= 200
    assert 400 <= seen.complete < seen.answer + paint.QUIET
