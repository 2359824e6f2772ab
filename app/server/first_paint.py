"""Middleware that adds the app's styles and the server's address to the HTML page, and serves scripts and the font.

Without this middleware, the styles would arrive after the content, and the content would jump. Scripts are served as
files because browsers cache files and their compiled code. Browsers do not cache scripts in Streamlit's messages.
"""

from functools import cache
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = 'window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href }'
"""Script with the server's address. Without it, Streamlit first looks for the server below the address of a page, such
as ``/matrices/_stcore/health``, with two requests that fail (streamlit/streamlit#7074)."""
MEDIA_TYPES = {".js": "text/javascript", ".woff2": "font/woff2"}
_END = b"</body>"
"""The tag before which the styles are inserted: after Streamlit's styles in the head, so that they take precedence.
Streamlit's own script is a module, which runs after this position."""


class FirstPaint:
    """ASGI middleware that adds styles and a script to the HTML page, which the app sends for every address."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the app's answer on, with the styles and the server's address added at the end of an HTML page."""
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        # Without the header ``accept-encoding``, Streamlit does not compress the page. Styles cannot be added to a
        # compressed page.
        scope = {**scope, "headers": [each for each in scope["headers"] if each[0] != b"accept-encoding"]}
        start: Message | None = None
        body = b""

        async def answer(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                if "text/html" not in Headers(raw=message["headers"]).get("content-type", ""):
                    await send(message)
                    return
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if message.get("more_body", False):
                    return
                body = body.replace(_END, _additions() + _END, 1)
                headers = MutableHeaders(raw=start["headers"])
                if "content-length" in headers:
                    headers["content-length"] = str(len(body))
                for name in ("etag", "last-modified"):  # Both describe the page without the added styles.
                    if name in headers:
                        del headers[name]
                await send(start)
                await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, answer)


@cache
def _additions() -> bytes:
    from app.page_script.mounting import files

    page, library, font = files()
    sheet = (Path(__file__).parent.parent / "page_script" / "style.css").read_text("utf-8")
    links = (
        f'<link rel="modulepreload" href="./{page}"><link rel="prefetch" href="./{library}">'
        f'<link rel="preload" href="./{font}" as="font" type="font/woff2" crossorigin>'
    )
    face = f'@font-face {{ font-family: Inter; font-weight: 400 700; src: url("./{font}"); }}\n'
    return f"<script>{ADDRESS}</script>{links}<style>{face}{sheet}</style>".encode()


class PageFiles:
    """ASGI middleware that serves the page's script, the library for charts and the font."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a file, which browsers may cache permanently; pass all other requests on to the app."""
        answer = self.app
        if scope["type"] == "http":
            # At the top of the file, this import would load torch before ``app.server.malloc`` has set up the heap.
            from app.page_script.mounting import files

            name = scope["path"].rpartition("/")[2]
            if content := files().get(name):
                unchanging = {"Cache-Control": "public, immutable, max-age=31536000"}
                answer = Response(content, media_type=MEDIA_TYPES[Path(name).suffix], headers=unchanging)
        await answer(scope, receive, send)
