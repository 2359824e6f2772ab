"""A patch that removes details of the server, such as file paths, from Streamlit's messages to browsers."""

import inspect
from functools import wraps
from typing import Any, Literal

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import Initialize, NewSession
from streamlit.runtime import app_session

PATH: Literal["main_script_path"] = "main_script_path"
DETAILS = ("environment_info", "user_info")
"""Parts of a session's first message: versions and system, and an identifier of this machine."""


def remove_server_info() -> bool:
    """Stop Streamlit from sending the server's file paths, versions, machine identifier and git state to browsers.

    A run's first message holds the paths and versions. The branch and changed files of the server's clone are sent on
    request, by about six git processes, and the server serves no other session meanwhile. Streamlit 1.67's page reloads
    itself when it sees a new server version; ``app/page_script/mounting.py`` handles this instead.

    Returns:
        Whether the patch was applied. False if Streamlit's private methods differ from the expected ones.
    """
    session = getattr(app_session, "AppSession", None)
    create = getattr(session, "_create_new_session_message", None)
    git_request = getattr(session, "_handle_git_information_request", None)
    has_fields = PATH in NewSession.DESCRIPTOR.fields_by_name and {*DETAILS} <= {*Initialize.DESCRIPTOR.fields_by_name}
    if session is None or not callable(create) or not callable(git_request) or not has_fields:
        return False
    if [*inspect.signature(git_request).parameters] != ["self"]:
        return False

    @wraps(create)
    def create_without_details(*args: Any, **kwargs: Any) -> ForwardMsg:  # noqa: ANN401 - Streamlit's
        message: ForwardMsg = create(*args, **kwargs)
        message.new_session.ClearField(PATH)
        for name in DETAILS:
            details = getattr(message.new_session.initialize, name)
            details.Clear()
            details.SetInParent()  # The browser reads this part, so it must be present, but may be empty.
        return message

    session._create_new_session_message = create_without_details
    session._handle_git_information_request = lambda self: None
    return True
