"""Middleware that adds security headers to every response.

The headers restrict what a page may load, which other sites may embed it, and which features of the browser it may use.
"""

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

from app.server.first_paint import ADDRESS

FRAME_ANCESTORS = "ATTENTION_LAB_FRAME_ANCESTORS"
"""Environment variable with the origins of pages that may show the app in a frame, separated by spaces."""
ANY_HTTPS = "'self' https:"
LOOPBACK = "http://localhost:* http://127.0.0.1:*"
"""Origins of pages served from the browser's own machine. A policy cannot name the IPv6 address: its grammar has no
brackets."""


def policy() -> str:
    """Return the content security policy: only this server, and the inline styles that figures and formulas need.

    By default any page over https may show the app in a frame. With profile ``own``, for the visitor's own machine,
    pages on loopback addresses may do so too. ``ATTENTION_LAB_FRAME_ANCESTORS`` replaces this list. The default can
    allow any page because the app has no login: a page that embeds it gains nothing from a visitor's clicks.
    """
    from attention_core import limits  # An import at the top would load torch before ``malloc`` configures the heap.

    ancestors = ANY_HTTPS if limits.current() is limits.HOSTED else f"{ANY_HTTPS} {LOOPBACK}"
    index = (Path(st.__file__).parent / "static" / "index.html").read_text("utf-8")
    scripts = *_SCRIPT.findall(index), ADDRESS
    inline = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
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
        "frame-ancestors": os.environ.get(FRAME_ANCESTORS) or ancestors,
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class SecurityHeaders:
    """ASGI middleware that adds ``headers`` to every answer and refuses a websocket opened by another site's page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers of every answer, built for the first answer."""
        return {
            "Content-Security-Policy": policy(),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",  # The address may contain the visitor's text.
            "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the app's answer on with ``headers`` added, and refuse a websocket that another site's page opens."""
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
                    # File uploads need Streamlit's cookie. If another site shows the app in a frame, browsers send the
                    # cookie only with these attributes.
                    headers["Set-Cookie"] = cookie.replace("SameSite=Lax", "SameSite=None; Secure; Partitioned")
            await send(message)

        await self.app(scope, receive, answer)


def _is_foreign(headers: Headers) -> bool:
    """Return whether another site's page sent a request.

    Streamlit's own check is not used, because it asks an external host for the server's IP address.
    """
    origin = headers.get("Origin")
    if origin is None or origin in st.get_option("server.corsAllowedOrigins"):
        return False
    page = urlsplit(origin)
    return page.netloc != headers.get("Host") and page.hostname not in ("localhost", "127.0.0.1")
