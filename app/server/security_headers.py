"""What every answer tells the browser about safety: a content security policy, who may frame it, what it may use."""

import base64
import hashlib
import os
import re
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FRAME_ANCESTORS = "ATTENTION_LAB_FRAME_ANCESTORS"
"""The environment variable that says which pages may show the lab in a frame, as origins separated by spaces."""
ANY_HTTPS = "'self' https:"
LOOPBACK = "http://localhost:* http://127.0.0.1:*"
"""Pages served from the browser's own machine. A policy cannot name the IPv6 address: its grammar has no brackets."""


def policy() -> str:
    """The content security policy: this server alone, and the styles that figures and formulas carry with them.

    By default any page over https may show the lab in a frame, and on the visitor's own machine (profile ``own``) a
    page on a loopback address too. ``ATTENTION_LAB_FRAME_ANCESTORS`` replaces this list. The default can be this wide
    because nobody logs in here, so a page around the lab has nothing to gain from a visitor's clicks.
    """
    from attention_core import limits  # not at the top: the heap is set up before torch is loaded

    framing = ANY_HTTPS if limits.current() is limits.HOSTED else f"{ANY_HTTPS} {LOOPBACK}"
    index = (Path(st.__file__).parent / "static" / "index.html").read_text("utf-8")
    inline = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in _SCRIPT.findall(index)]
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(["'self'", "blob:", *(f"'sha256-{digest}'" for digest in inline)]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "manifest-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": os.environ.get(FRAME_ANCESTORS) or framing,
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class Safety:
    """Adds these headers to every answer, and turns away a websocket that another site's page opens."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers of every answer, made for the first answer."""
        return {
            "Content-Security-Policy": policy(),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",  # an address holds the visitor's text
            "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app does, with these headers."""
        if scope["type"] == "websocket" and _is_foreign(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        secure = "https" in (scope["scheme"], Headers(scope=scope).get("X-Forwarded-Proto"))

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers.update(self.headers)
                if secure and (cookie := headers.get("Set-Cookie")):
                    # Uploads need Streamlit's cookie, which comes back inside another site's frame only if it says so.
                    headers["Set-Cookie"] = cookie.replace("SameSite=Lax", "SameSite=None; Secure; Partitioned")
            await send(message)

        await self.app(scope, receive, answer)


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site asks. Streamlit would turn it away too, but ask a host outside for its own IP."""
    origin = headers.get("Origin")
    if origin is None or origin in st.get_option("server.corsAllowedOrigins"):
        return False
    here = urlsplit(origin)
    return here.netloc != headers.get("Host") and here.hostname not in ("localhost", "127.0.0.1")
