"""Middleware that puts the app's styles, the server's address and the scripts to load into the HTML page.

Without it, the styles would arrive with the first rerun, after the content, and the content would jump. The browser
would also load the code of an element, such as a chart, only after an answer of the server contains one.
"""

import re
from functools import cache
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCRIPT = """
window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href };
{
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (message) {
    WebSocket.prototype.send = send;
    this.send(message);
    for (const link of document.querySelectorAll("link[rel=later]")) link.rel = "modulepreload";
  };
}
"""
"""Script of the page. Without the server's address, Streamlit first looks for the server below the address of a page,
such as ``/matrices/_stcore/health``, with two requests that fail (streamlit/streamlit#7074). After the first request,
the elements' scripts are loaded while the server answers. Loaded any earlier, they delayed that request by 0.1 s."""
ELEMENTS = ("BidiComponent", "Button", "ButtonGroup", "Html", "PageLink")
"""Streamlit's names of the elements that most pages draw. ``Page.elements`` adds those of one page."""
INPUT_ELEMENTS = ("Checkbox", "Selectbox", "TextArea")
"""The elements that pages with the shared input draw in addition."""
_IMPORT = re.compile(r"""(?:from|import)"\./([\w.-]+\.js)\"""")
_IMPORTS_END = 20_000
"""Characters of a script that contain all its imports. The script of charts has 4.7 million."""
_END = b"</body>"
"""Position of the styles in the page: after the styles that Streamlit adds to the head, so that they take precedence.
Streamlit's own script is a module, which runs after this position."""


class FirstPaint:
    """ASGI middleware that adds to the HTML page with which the app answers every address."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app does, with the additions at the end of an HTML page."""
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        # Without this request header, Streamlit does not compress the page: nothing can be added to a compressed one.
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
                body = body.replace(_END, _additions(scope["path"].strip("/")) + _END, 1)
                headers = MutableHeaders(raw=start["headers"])
                if "content-length" in headers:
                    headers["content-length"] = str(len(body))
                for name in ("etag", "last-modified"):  # Both describe the file without the styles that were added.
                    if name in headers:
                        del headers[name]
                await send(start)
                await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, answer)


@cache
def scripts(elements: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of Streamlit's scripts that a page with these elements needs and its HTML page does not name."""
    folder = Path(st.__file__).parent / "static" / "static" / "js"
    named = (folder.parent.parent / "index.html").read_text("utf-8")
    queue = [path.name for element in elements for path in sorted(folder.glob(f"{element}.*.js"))]
    for name in queue:
        with (folder / name).open(encoding="utf-8") as file:
            imported = _IMPORT.findall(file.read(_IMPORTS_END))
        queue += [each for each in dict.fromkeys(imported) if each not in queue and each not in named]
    return tuple(queue)


def _additions(path: str) -> bytes:
    from app.page import discover  # An import at the top would load torch before ``malloc`` configures the heap.

    page = discover().get(path or "home")
    shared = INPUT_ELEMENTS if page and page.uses_input else ()
    names = scripts((*ELEMENTS, *shared, *(page.elements if page else ())))
    links = (f'<link rel="later" crossorigin href="./static/js/{name}">' for name in names)
    return "".join([*links, f"<script>{SCRIPT}</script><style>{_sheet()}</style>"]).encode()


@cache
def _sheet() -> str:
    return (Path(__file__).parent.parent / "page_script" / "style.css").read_text("utf-8")
