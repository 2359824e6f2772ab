"""What Streamlit tells every browser of the server, and no visitor has a use for: it is left out."""

import inspect
from functools import wraps
from typing import Any, Literal

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import Initialize, NewSession
from streamlit.runtime import app_session

PATH: Literal["main_script_path"] = "main_script_path"
ABOUT = ("environment_info", "user_info")
"""Parts of a session's first words: versions and system, and what tells this machine from others."""


def leave_out() -> bool:
    """Let no visitor be told where the server's files lie, what its versions are and which machine it is.

    A run's first message says the one; whoever asks for it is told the other, branch and changed files of the clone it
    runs from, by half a dozen processes of git, while nobody else is served. Streamlit 1.67's page loads itself anew
    where it meets another version than before: ``app/page_script/mounting.py`` looks after that.

    Returns:
        Whether it could be done: this rests on methods that are none of Streamlit's promises.
    """
    session = getattr(app_session, "AppSession", None)
    create = getattr(session, "_create_new_session_message", None)
    asked = getattr(session, "_handle_git_information_request", None)
    known = PATH in NewSession.DESCRIPTOR.fields_by_name and {*ABOUT} <= {*Initialize.DESCRIPTOR.fields_by_name}
    if session is None or not callable(create) or not callable(asked) or not known:
        return False
    if [*inspect.signature(asked).parameters] != ["self"]:
        return False

    @wraps(create)
    def create_untold(*args: Any, **kwargs: Any) -> ForwardMsg:  # noqa: ANN401 - Streamlit's
        message: ForwardMsg = create(*args, **kwargs)
        message.new_session.ClearField(PATH)
        for name in ABOUT:
            part = getattr(message.new_session.initialize, name)
            part.Clear()
            part.SetInParent()  # the browser looks into it
        return message

    session._create_new_session_message = create_untold
    session._handle_git_information_request = lambda self: None
    return True
