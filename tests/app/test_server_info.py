"""Tests that the server sends browsers no file paths or versions, and that they still detect a new version."""

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession

from app.page_script import mounting
from app.streamlit_patches import server_info


def new_session(*, hello=False):
    message = ForwardMsg()
    message.new_session.main_script_path = "/home/somebody/app/main.py"
    message.new_session.main_script_hash = "abc"
    text = message.new_session.initialize
    text.session_id, text.is_hello = "session", hello
    text.environment_info.streamlit_version = "1.2.3"
    text.environment_info.python_version = "3.4.5"
    text.user_info.installation_id = "this machine"
    return message


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setattr(
        AppSession, "_create_new_session_message", lambda self, *, hello=False: new_session(hello=hello)
    )


def test_server_details_are_removed_and_other_fields_stay():
    assert server_info.remove_server_info()
    message = AppSession._create_new_session_message(None, hello=True)
    raw = message.SerializeToString()
    for word in (b"somebody", b"1.2.3", b"3.4.5", b"this machine"):
        assert word not in raw
    text = message.new_session.initialize
    AppSession._handle_git_information_request(None)  # It sends no answer.
    assert text.HasField("environment_info")
    assert text.HasField("user_info")
    assert (message.new_session.main_script_hash, text.session_id, text.is_hello) == ("abc", "session", True)


@pytest.mark.parametrize(
    ("place", "name", "other"),
    [
        (app_session, "AppSession", None),
        (AppSession, "_create_new_session_message", None),
        (AppSession, "_handle_git_information_request", None),
        (AppSession, "_handle_git_information_request", lambda self, branch: None),
        (server_info, "PATH", "no such field"),
        (server_info, "DETAILS", ("user_info", "no such field")),
    ],
)
def test_an_unexpected_streamlit_is_not_patched(monkeypatch, place, name, other):
    monkeypatch.setattr(place, name, other)
    before = AppSession._create_new_session_message, AppSession._handle_git_information_request
    assert not server_info.remove_server_info()
    assert (AppSession._create_new_session_message, AppSession._handle_git_information_request) == before


def test_versions_are_distinguished_without_their_numbers(monkeypatch):
    def name():
        return next(iter(mounting.files.__wrapped__()))

    now = name()
    assert now == name()
    monkeypatch.setattr(mounting.st, "__version__", "1.68.0")
    later = name()
    assert later != now
    assert "1.68" not in later
    monkeypatch.setattr(mounting, "script", lambda entry: "another script")
    assert name() not in (now, later)
