"""A patch that stops Streamlit from watching source files when a session reconnects."""

import inspect

import streamlit as st
from streamlit.runtime import app_session


def disable_watchers() -> bool:
    """Prevent sessions that reconnect from watching files if ``server.fileWatcherType`` is ``"none"``.

    A new session follows this option; a session that reconnects does not (Streamlit 1.67). After each of its runs it
    resolves the path of every module, and the server serves no other session meanwhile. Fifty sessions that reconnect
    together block a server for ten seconds.

    Returns:
        Whether the option now holds for reconnecting sessions. False if Streamlit's private method differs from the
        expected one.
    """
    session = getattr(app_session, "AppSession", None)
    watch = getattr(session, "register_file_watchers", None)
    if st.get_option("server.fileWatcherType") != "none":
        return True
    if session is None or watch is None or [*inspect.signature(watch).parameters] != ["self"]:
        return False
    session.register_file_watchers = lambda self: None
    return True
