"""Entry point of ``streamlit run app``: the ASGI app, which loads modules and a model before the first visitor."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

# Streamlit adds this file's folder to the import path. The packages of the project are in the parent folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from app.server import malloc
from app.server.first_paint import FirstPaint, PageFiles
from app.server.security_headers import SecurityHeaders
from app.streamlit_patches import patches


@contextlib.asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Warm the process up before the server answers health checks."""
    from app.server.warmup import warm_up

    malloc.share_heap()  # This affects new threads only, so it must precede ``warm_up``.
    patches.apply()
    await asyncio.to_thread(warm_up)
    yield


# No other visitor is served during compression. Level 4 takes less than half the time of level 9, for 5 % more bytes.
COMPRESSION = Middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)
MIDDLEWARE = [Middleware(SecurityHeaders), COMPRESSION, Middleware(PageFiles), Middleware(FirstPaint)]
app = st.App("main.py", lifespan=lifespan, middleware=MIDDLEWARE)
