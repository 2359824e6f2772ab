"""A browser test of the app inside a frame on a page of another site: uploading a file works."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from browser import BOARD
from conftest import WIDE, listening, watched
from playwright.sync_api import expect


@pytest.fixture
def course(server):
    """Yield the address of a page that shows the lab in a frame; for a browser, this page belongs to another site."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            framed = f'<iframe src="{server}/matrices?input=upload" width="1300" height="900"></iframe>'
            self.wfile.write(framed.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://localhost:{serving.server_port}/"
        serving.shutdown()


@pytest.fixture
def secure(chromium):
    """Yield a page whose requests reach the lab as if they came through an https proxy."""
    context = listening(chromium.new_context(**WIDE, extra_http_headers={"X-Forwarded-Proto": "https"}))
    yield from watched(context.new_page())
    context.close()


def test_a_file_is_uploaded_in_a_frame(course, secure):
    held, rng = io.BytesIO(), np.random.default_rng(0)
    np.savez(held, **{name: rng.normal(size=(2, 12, 4)).astype("float32") for name in "qkv"})
    secure.goto(course)
    lab = secure.frame_locator("iframe")
    file = {"name": "own.npz", "mimeType": "application/zip", "buffer": held.getvalue()}
    lab.get_by_test_id("stFileUploader").locator("input[type=file]").set_input_files(file)
    expect(lab.locator(f"{BOARD}[data-paints]")).to_be_visible(timeout=60_000)
