"""Tests of the HTML page that opens the app: it contains the app's styles and the server's address."""

import base64
import gzip
import hashlib

import pytest
from driver import complete

from app.page_script.mounting import files
from app.server import security_headers
from app.server.first_paint import ADDRESS, FirstPaint, PageFiles

PAGE = b"<html><head></head><body><div></div></body></html>"


def answered(path="/entropy", query="", *, kind=b"text/html; charset=utf-8", accept="text/html", chunks=(PAGE,)):
    """Return the headers and the body of a response, and the scope received by the wrapped app."""
    asked, sent = [], []

    async def inside(scope, receive, send):
        asked.append(scope)
        headers = [(b"content-type", kind), (b"content-length", str(len(PAGE)).encode()), (b"etag", b'"x"')]
        body = gzip.compress(b"".join(chunks)) if (b"accept-encoding", b"gzip") in scope["headers"] else None
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for i, chunk in enumerate([body] if body else chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": not body and i < len(chunks) - 1})

    async def send(message):
        sent.append(message)

    headers = [(b"accept", accept.encode()), (b"accept-encoding", b"gzip")]
    scope = {"type": "http", "path": path, "query_string": query.encode(), "headers": headers}
    complete(PageFiles(FirstPaint(inside))(scope, None, send))
    start, *rest = sent
    return dict(start["headers"]), b"".join(each["body"] for each in rest)


@pytest.mark.parametrize("chunks", [(PAGE,), (PAGE[:20], PAGE[20:30], PAGE[30:])])
def test_the_styles_are_at_the_end_of_a_page(chunks):
    headers, body = answered(chunks=chunks)
    before, after = body.split(b"<style>")
    page, library, font = files()
    links = f'<link rel="modulepreload" href="./{page}"><link rel="prefetch" href="./{library}">'
    links += f'<link rel="preload" href="./{font}" as="font" type="font/woff2" crossorigin>'
    added = f"<script>{ADDRESS}</script>{links}"
    assert before == PAGE.removesuffix(b"</body></html>") + added.encode()
    assert b"stMainBlockContainer" in after
    assert after.endswith(b"</style></body></html>")
    assert int(headers[b"content-length"]) == len(body)
    assert b"etag" not in headers, "of the file without the styles"


def test_other_responses_are_unchanged():
    headers, body = answered(kind=b"application/json", accept="application/json")
    assert gzip.decompress(body) == PAGE
    assert headers[b"etag"] == b'"x"'
    assert answered(kind=b"application/json")[1] == PAGE


@pytest.mark.parametrize("base", ["", "/lab"])
@pytest.mark.parametrize("name", files())
def test_scripts_and_the_font_are_files_that_browsers_cache(base, name):
    headers, body = answered(f"{base}/{name}", kind=b"text/plain", accept="*/*")
    assert body == files()[name]
    assert headers[b"content-type"].startswith(b"font/woff2" if "woff2" in name else b"text/javascript")
    assert b"immutable" in headers[b"cache-control"]


def test_the_script_of_another_version_is_not_found():
    headers, body = answered("/page_script.0123456789ab.js", kind=b"text/plain", accept="*/*")
    assert gzip.decompress(body) == PAGE
    assert b"cache-control" not in headers


def test_the_policy_allows_the_script_with_the_servers_address():
    digest = base64.b64encode(hashlib.sha256(ADDRESS.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in security_headers.policy()
