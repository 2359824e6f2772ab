"""The list of patches that replace private methods of Streamlit, and the function that applies them.

They are applied only to the version of Streamlit that they were written for.
"""

import logging
from importlib import import_module
from typing import NamedTuple

import streamlit as st

STREAMLIT_VERSION = "1.67.0"
"""The required Streamlit version, which ``pyproject.toml`` and ``requirements.txt`` also pin."""
_log = logging.getLogger(__name__)


class Patch(NamedTuple):
    """A function that replaces private methods of Streamlit and returns whether it replaced them.

    Attributes:
        module: the module in this package that holds the function. It is imported only on the right version, as it
            imports Streamlit's internals.
        function: the function's name.
        effect_without: the effect on a server without the patch.
    """

    module: str
    function: str
    effect_without: str


PATCHES = (
    Patch(
        "file_watching",
        "disable_watchers",
        "a session that reconnects watches source files again, which stalls the server",
    ),
    Patch("server_info", "remove_server_info", "browsers receive the server's paths, versions and git branch"),
    Patch("message_cache", "track_cache", "clicks during a run can leave a page that no longer updates"),
)


def apply() -> None:
    """Apply all patches if Streamlit has the version ``STREAMLIT_VERSION``; log a warning for each that is not applied.

    A similar version is not enough. A patch can check the methods that it replaces, but ``message_cache`` also relies
    on rules in the browser's JavaScript, which Python cannot inspect.
    """
    matches = st.__version__ == STREAMLIT_VERSION
    for patch in PATCHES:
        if not (matches and getattr(import_module(f"{__package__}.{patch.module}"), patch.function)()):
            _log.warning(
                "Patch %s.%s is off: it is written for Streamlit %s, and %s is installed%s. Without it %s.",
                patch.module,
                patch.function,
                STREAMLIT_VERSION,
                st.__version__,
                " with other methods" if matches else "",
                patch.effect_without,
            )
