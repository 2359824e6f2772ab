"""Widgets read the values of a session that they read before, one by one."""

import json

import pytest
from streamlit.runtime.state import safe_session_state, session_state
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1 import AppTest

from app.streamlit_patches import session_reading

PLAIN = SafeSessionState.filtered_state


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setattr(SafeSessionState, "filtered_state", PLAIN)


def page():
    import streamlit as st
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    st.session_state.setdefault("own", 7)
    st.selectbox("unnamed", ["a", "b"])
    st.selectbox("named", ["a", "b"], key="named", index=None)
    st.session_state.setdefault("set", "b")
    st.selectbox("set before", ["a", "b"], key="set")
    st.slider("slides", key="slides")
    state = get_script_run_ctx().session_state
    found, whole, others = state.filtered_state, state._state.filtered_state, [*state._state._keys(), "no such"]
    st.code(type(found).__name__, language=None)
    st.json({"read": {name: found[name] for name in whole}, "copied": whole, "listed": [*found], "told": repr(found)})
    st.json(
        {"apart": [name for name in others if (name in found) != (name in whole)], "sizes": [len(found), len(whole)]}
    )


def test_every_value_is_what_it_was_and_widgets_keep_theirs():
    assert session_reading.one_by_one()
    at = AppTest.from_function(page).run()
    assert not at.exception
    assert at.selectbox(key="named").value is None
    assert at.selectbox(key="set").value == "b"
    at = at.selectbox(key="named").select("b").run()
    assert at.selectbox(key="named").value == "b"
    assert at.code[0].value == "Filtered"
    values, names = (json.loads(each.value) for each in at.json)
    assert values["read"] == values["copied"] == {"own": 7, "named": "b", "set": "b", "slides": 0}
    assert values["listed"] == [*values["copied"]]
    assert values["told"] == repr(values["copied"])
    assert names == {"sizes": [4, 4], "apart": []}


@pytest.mark.parametrize(
    ("place", "name"), [(safe_session_state, "SafeSessionState"), (session_state, "_is_internal_key")]
)
def test_a_streamlit_that_does_it_otherwise_is_left_alone(monkeypatch, place, name):
    monkeypatch.delattr(place, name)
    assert not session_reading.one_by_one()
    assert SafeSessionState.filtered_state is PLAIN
