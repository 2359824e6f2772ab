"""Tests of the patch that makes Streamlit send the hash of a message only if the browser has cached the message."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_websocket import StarletteSessionClient

from app.streamlit_patches import message_cache
from app.streamlit_patches.message_cache import BrowserMessageCache
from benchmarks.load.screen import Screen

WRITE, RESET = StarletteSessionClient.write_forward_msg, ScriptRunContext.reset
OLDEST = 2


@pytest.fixture(autouse=True)
def restored_methods(monkeypatch):
    monkeypatch.setattr(StarletteSessionClient, "write_forward_msg", WRITE)
    monkeypatch.setattr(ScriptRunContext, "reset", RESET)


def large(name, part="", place=0):
    message = ForwardMsg(hash=name)
    message.metadata.cacheable = True
    message.metadata.delta_path[:] = [0, place]
    message.delta.fragment_id = part
    message.delta.new_element.markdown.body = name * 9
    return message


def run_started(parts=(), run="run"):
    message = ForwardMsg()
    message.metadata.run.script_run_id, message.metadata.run.fragment_ids[:] = run, parts
    message.new_session.config.max_cached_message_age = OLDEST
    return message


def ended(parts=(), status=ForwardMsg.FINISHED_SUCCESSFULLY, run="run"):
    message = ForwardMsg(script_finished=status)
    message.metadata.run.script_run_id, message.metadata.run.fragment_ids[:] = run, parts
    return message


def sent(cache, message):
    """Send a message, and return what is sent: its hash if the browser has cached it, else the message."""
    found = cache.shorten(message)
    cache.record(found)
    return found


def kinds(cache, *messages):
    return [sent(cache, message).WhichOneof("type") for message in messages]


def test_a_cached_message_is_sent_as_a_hash_and_an_evicted_one_in_full():
    cache = BrowserMessageCache(OLDEST)
    assert kinds(cache, large("a"), ended(), ended()) == ["delta", "script_finished", "script_finished"]
    shortened = sent(cache, large("a", place=7))
    assert (shortened.ref_hash, [*shortened.metadata.delta_path]) == ("a", [0, 7])
    assert kinds(cache, ended(), ended(), large("a")) == [*["script_finished"] * 2, "ref_hash"]
    assert kinds(cache, ended(), ended(), ended(), large("a"))[-1] == "delta"


def test_a_fragment_run_evicts_only_its_own_messages_and_a_stopped_run_nothing():
    cache = BrowserMessageCache(OLDEST)
    kinds(cache, large("page"), large("one", "one"), large("other", "other"))
    kinds(cache, *[ended(["one"], ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)] * 5)
    assert kinds(cache, large("page"), large("one", "one"), large("other", "other")) == [
        "ref_hash",
        "delta",
        "ref_hash",
    ]
    kinds(cache, *[ended(status=ForwardMsg.FINISHED_EARLY_FOR_RERUN)] * 5)
    assert kinds(cache, large("page")) == ["ref_hash"]


def test_small_messages_are_sent_unchanged():
    cache, small = BrowserMessageCache(OLDEST), large("a")
    small.metadata.cacheable = False
    assert kinds(cache, small, small) == ["delta", "delta"]


def test_a_message_that_is_too_large_is_not_cached(monkeypatch):
    def write(self, msg):
        if msg.hash == "huge":
            msg.metadata.cacheable = False  # Streamlit does this when it replaces a large message by an error.
        wrote.append(msg.WhichOneof("type"))

    wrote, client = [], SimpleNamespace()
    monkeypatch.setattr(StarletteSessionClient, "write_forward_msg", write)
    assert message_cache.track_cache()
    for name in ("huge", "huge", "fits", "fits"):
        StarletteSessionClient.write_forward_msg(client, large(name))
    assert wrote == ["delta", "delta", "delta", "ref_hash"]


RUNS = st.lists(
    st.tuples(
        st.sampled_from([(), ("one",), ("other",), ("one", "other")]),
        st.lists(st.sampled_from("abcdefg"), max_size=4),
        st.booleans(),
    ),
    max_size=30,
)


@given(RUNS)
@settings(max_examples=300)
def test_a_browser_has_every_hashed_message_and_gets_no_cached_one_again(runs):
    cache, screen = BrowserMessageCache(OLDEST), Screen("http://127.0.0.1/")
    for number, (parts, names, whole) in enumerate(runs):
        run = str(number)
        screen.read(run_started(parts, run).SerializeToString())
        for place, name in enumerate(names):
            holds = name in screen._cached
            message = large(name, "one" if name in "abc" else "other" if name in "de" else "", place)
            found = sent(cache, message)
            assert (found.WhichOneof("type") == "ref_hash") == holds
            screen.read(found.SerializeToString())
        usual = ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY if parts else ForwardMsg.FINISHED_SUCCESSFULLY
        status = usual if whole else ForwardMsg.FINISHED_EARLY_FOR_RERUN
        screen.read(sent(cache, ended(parts, status, run)).SerializeToString())
    assert not screen.errors


def test_every_connection_has_its_own_cache_and_the_browsers_list_is_ignored(monkeypatch):
    wrote, messages = [], []
    monkeypatch.setattr(StarletteSessionClient, "write_forward_msg", lambda self, msg: wrote.append(msg))

    def reset(self, query_string="", cached_message_hashes=None):
        messages.append((query_string, cached_message_hashes))

    monkeypatch.setattr(ScriptRunContext, "reset", reset)
    assert message_cache.track_cache()
    for client in (one := SimpleNamespace(), SimpleNamespace(), one):
        StarletteSessionClient.write_forward_msg(client, large("a"))
    assert [message.WhichOneof("type") for message in wrote] == ["delta", "delta", "ref_hash"]
    ScriptRunContext.reset(None, query_string="n=24", cached_message_hashes=frozenset("a"))
    assert messages == [("n=24", None)]


@pytest.mark.parametrize(
    ("place", "name", "other"),
    [
        (starlette_websocket, "StarletteSessionClient", None),
        (script_run_context, "ScriptRunContext", None),
        (StarletteSessionClient, "write_forward_msg", lambda self, msg, later: None),
        (ScriptRunContext, "reset", lambda self, query_string: None),
    ],
)
def test_an_unexpected_streamlit_is_not_patched(monkeypatch, place, name, other):
    monkeypatch.setattr(place, name, other)
    before = StarletteSessionClient.write_forward_msg, ScriptRunContext.reset
    assert not message_cache.track_cache()
    assert (StarletteSessionClient.write_forward_msg, ScriptRunContext.reset) == before
