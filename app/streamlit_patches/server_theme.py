"""A patch that reads Streamlit's theme from the options once instead of at every run."""

import inspect

from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig, NewSession
from streamlit.runtime import app_session


def keep() -> bool:
    """Cache the theme message that Streamlit sends with every run.

    No page can set a theme. When a configuration file changes, Streamlit creates a new options object, and the cache is
    rebuilt.

    Returns:
        Whether the patch was applied. False if Streamlit's private functions differ from those of version 1.67.
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
        if told[section].HasField("custom_theme"):  # a section without options has no such field
            msg.MergeFrom(told[section].custom_theme)
            msg.SetInParent()

    app_session._populate_theme_msg = tell_again
    return True
