"""Tests of the garbage collector's settings: no collection after each run, and closed sessions are still freed."""

import gc
import tomllib
import weakref
from pathlib import Path

import pytest
from driver import open_page

import app
from app.server import gc_tuning

CONFIG = tomllib.loads((Path(app.__file__).parent / ".streamlit" / "config.toml").read_text("utf-8"))


def test_no_run_watches_files_collects_garbage_or_packs_figures():
    assert CONFIG["server"]["fileWatcherType"] == "none"
    assert CONFIG["runner"]["postScriptGC"] is False
    assert CONFIG["server"]["enableWebsocketCompression"] is False


@pytest.fixture
def frozen(monkeypatch):
    """Return a list that grows by one whenever the app calls ``gc.freeze``."""
    messages = []
    monkeypatch.setattr(gc_tuning, "_frozen_names", set())
    monkeypatch.setattr(gc, "freeze", lambda: messages.append("frozen"))
    return messages


def test_a_page_is_frozen_once_for_all_visitors(frozen):
    for _ in range(2):
        open_page("home")
        open_page("masks", input="synthetic", n=8).run()
    assert frozen == ["frozen"] * 2
    assert gc.get_threshold()[2] == gc_tuning.FULL_COLLECTION_THRESHOLD


def test_the_objects_of_a_closed_session_are_freed(frozen):
    at = open_page("masks", input="synthetic", n=8)
    left = weakref.ref(at.session_state)
    del at
    gc.collect()
    assert left() is None
