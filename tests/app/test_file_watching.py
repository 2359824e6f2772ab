"""Tests of the patch that stops Streamlit from watching source files when a session reconnects."""

from types import SimpleNamespace

import pytest
from streamlit.runtime.app_session import AppSession

from app.streamlit_patches import file_watching


@pytest.fixture
def session(monkeypatch):
    # This restores the method after the test.
    monkeypatch.setattr(AppSession, "register_file_watchers", AppSession.register_file_watchers)
    return SimpleNamespace(_local_sources_watcher=None)


def set_to(monkeypatch, kind):
    monkeypatch.setattr(
        file_watching.st, "get_option", lambda name: kind if name == "server.fileWatcherType" else 1 / 0
    )


def test_a_reconnected_session_watches_no_files(session, monkeypatch):
    set_to(monkeypatch, "none")
    assert file_watching.disable_watchers()
    AppSession.register_file_watchers(session)
    assert session._local_sources_watcher is None


def test_file_watching_stays_on_if_it_is_configured(session, monkeypatch):
    before = AppSession.register_file_watchers
    set_to(monkeypatch, "auto")
    assert file_watching.disable_watchers()
    assert AppSession.register_file_watchers is before


def test_an_unexpected_streamlit_is_not_patched(session, monkeypatch):
    set_to(monkeypatch, "none")
    monkeypatch.setattr(AppSession, "register_file_watchers", lambda self, folders: None)
    before = AppSession.register_file_watchers
    assert not file_watching.disable_watchers()
    assert AppSession.register_file_watchers is before
