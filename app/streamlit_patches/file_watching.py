"""Streamlit's watch over the source files, off where it is to be off."""

import inspect

import streamlit as st
from streamlit.runtime import app_session


def keep_off() -> bool:
    """Let no session watch files again that has lost its connection and come back, where none is to watch any.

    A new session asks ``server.fileWatcherType``; one that comes back does not (Streamlit 1.67), and then resolves the
    path of every module there is after its runs, while nobody else is served: fifty who come back at once hold a server
    up for ten seconds.

    Returns:
        Whether no session that returns watches files that it should not: False if Streamlit's method, which is not part
        of its public interface, is another one than expected.
    """
    session = getattr(app_session, "AppSession", None)
    watch = getattr(session, "register_file_watchers", None)
    if st.get_option("server.fileWatcherType") != "none":
        return True
    if session is None or watch is None or [*inspect.signature(watch).parameters] != ["self"]:
        return False
    session.register_file_watchers = lambda self: None
    return True
