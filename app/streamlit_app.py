"""What ``streamlit run app`` finds: the server's entry, warm before its first visitor."""

import asyncio
import gc
import importlib
import pkgutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware


def warm_up() -> None:
    """Import what the pages need, load the default model and run it once."""
    import app as app_package
    import attention_core as ac
    from app import page, presets
    from attention_core.measure.device import use_threads

    use_threads()
    for module in pkgutil.walk_packages(app_package.__path__, "app."):
        if module.name not in ("app.main", "app.streamlit_app"):  # what runs, rather than what is shared
            importlib.import_module(module.name)
    page.discover()
    ac.all_variants()
    ac.inputs.from_text(presets.texts()["english"], model="minilm", layer=presets.LAYER)
    # Streamlit collects all generations after every run; without the frozen imports that takes 0.2 s under the lock.
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Be warm before the health check answers."""
    await asyncio.to_thread(warm_up)
    yield


# Level 4 takes less than half of level 9's time, in which nobody else is served, for a twentieth more bytes.
SMALLER = Middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)
app = st.App("main.py", lifespan=lifespan, middleware=[SMALLER])
