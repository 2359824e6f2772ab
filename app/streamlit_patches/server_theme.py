"""Streamlit's theme as every run tells it to the browser: read from the options once, not at every run."""

import inspect

from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig, NewSession
from streamlit.runtime import app_session


def keep() -> bool:
    """Keep each part of the theme as it is first told, where Streamlit tells it as it does in 1.67.

    No page can set a theme, and where the files that do are read again, that makes new options and so a new theme.

    Returns:
        Whether it could be done: this rests on functions that are none of Streamlit's promises.
    """
    tell, options = getattr(app_session, "_populate_theme_msg", None), getattr(config, "get_config_options", None)
    if tell is None or options is None or [*inspect.signature(tell).parameters] != ["msg", "section"]:
        return False
    of: object = None
    told: dict[str, NewSession] = {}

    def tell_again(msg: CustomThemeConfig, section: str = "theme") -> None:
        nonlocal of
        if (now := options()) is not of:
            of = now
            told.clear()
        if section not in told:
            told[section] = NewSession()
            tell(told[section].custom_theme, section)
        if told[section].HasField("custom_theme"):  # a part that says nothing is not there at all
            msg.MergeFrom(told[section].custom_theme)
            msg.SetInParent()

    app_session._populate_theme_msg = tell_again
    return True
