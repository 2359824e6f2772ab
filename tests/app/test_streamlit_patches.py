"""Tests that Streamlit is patched on the expected version only, and that a warning lists the skipped patches."""

import asyncio
import logging
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.web.server.starlette.starlette_websocket import StarletteSessionClient

from app import streamlit_app
from app.server import warmup
from app.streamlit_patches import patches

ROOT = Path(__file__).parents[2]
REPLACED = (
    (AppSession, "register_file_watchers"),
    (AppSession, "_create_new_session_message"),
    (AppSession, "_handle_git_information_request"),
    (StarletteSessionClient, "write_forward_msg"),
    (ScriptRunContext, "reset"),
)


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    for place, name in REPLACED:
        monkeypatch.setattr(place, name, getattr(place, name))
    monkeypatch.setattr(warmup, "warm_up", lambda: None)
    option = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: "none" if name == "server.fileWatcherType" else option(name))


def started():
    """Return the replaceable methods after a server start, which applies the patches."""

    async def begin():
        async with streamlit_app.lifespan(streamlit_app.app):
            pass

    with ThreadPoolExecutor(1) as pool:  # A browser test may have left an event loop in this thread.
        pool.submit(asyncio.run, begin()).result()
    return [getattr(place, name) for place, name in REPLACED]


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_all_patches_are_applied_without_a_warning_on_the_version_they_were_written_for(caplog):
    before = [getattr(place, name) for place, name in REPLACED]
    after = started()
    assert all(old is not new for old, new in zip(before, after, strict=True))
    assert not warnings(caplog)


@pytest.mark.parametrize("version", ["1.67.1", "1.66.0", "1.68.0"])
def test_another_version_of_streamlit_is_not_patched_and_each_patch_is_reported(monkeypatch, caplog, version):
    before = [getattr(place, name) for place, name in REPLACED]
    monkeypatch.setattr(st, "__version__", version)
    assert started() == before
    found = warnings(caplog)
    for module in ("file_watching", "server_info", "message_cache"):
        [line] = [each for each in found if f"Patch {module}." in each]
        assert f"Streamlit {patches.STREAMLIT_VERSION}, and {version} is installed" in line


def test_only_a_patch_whose_methods_are_missing_is_reported(monkeypatch, caplog):
    monkeypatch.setattr(AppSession, "_handle_git_information_request", lambda self, part: None)
    started()
    [line] = warnings(caplog)
    assert line.startswith("Patch server_info.remove_server_info is off")


def test_the_package_requires_the_patched_version():
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["app"]
    assert f"streamlit[performance]=={patches.STREAMLIT_VERSION}" in requirements
    pinned = (ROOT / "requirements.txt").read_text()
    assert re.search(rf"^streamlit\[performance\]=={re.escape(patches.STREAMLIT_VERSION)}$", pinned, re.MULTILINE)
