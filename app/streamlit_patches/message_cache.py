"""A patch of Streamlit: the server itself tracks which large messages each browser has cached.

Without the patch, a browser lists its cached messages in each request, and the server sends only the hashes of listed
messages. A browser evicts a message that was not used for several runs. If it evicts a listed message before the
server answers, it cannot resolve the hash and stops updating the page. Clicks during a run are enough to cause this.
"""

import inspect
from typing import Any

from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.web.server.starlette import starlette_websocket

ATTRIBUTE = "_held_by_browser"
"""The attribute of a connection that stores its ``BrowserMessageCache``."""


class BrowserMessageCache:
    """The messages that the browser at the other end of a connection has cached, by the rules of Streamlit 1.67.

    Args:
        max_age: the browser evicts a message once more than this number of runs have ended since its last use.
    """

    def __init__(self, max_age: int) -> None:
        self._max_age, self._runs = max_age, 0
        self._last_uses: dict[str, tuple[int, str]] = {}  # Message hash -> (ended runs at its last use, fragment ID).

    def shorten(self, message: ForwardMsg) -> ForwardMsg:
        """Return what to send for a message: a reference to it if the browser has cached it, or the message."""
        is_cached = message.metadata.cacheable and message.hash in self._last_uses
        return create_reference_msg(message) if is_cached else message

    def record(self, message: ForwardMsg) -> None:
        """Record a message that was sent. Streamlit replaces a message that is too large by one that is not cached."""
        kind, name = message.WhichOneof("type"), message.ref_hash or message.hash
        if kind == "script_finished":
            self._end(message)
        elif kind == "ref_hash" or message.metadata.cacheable:
            _, fragment = self._last_uses.get(name, (0, message.delta.fragment_id))
            self._last_uses[name] = self._runs, fragment

    def _end(self, message: ForwardMsg) -> None:
        if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return
        self._runs += 1
        fragments = message.metadata.run.fragment_ids
        self._last_uses = {
            name: (last_use, fragment)
            for name, (last_use, fragment) in self._last_uses.items()
            if self._runs - last_use <= self._max_age or (fragments and fragment not in fragments)
        }


def track_cache() -> bool:
    """Make Streamlit send hashes only for messages that the browser has cached for certain.

    The rules of ``BrowserMessageCache`` are those of one version's JavaScript: ``patches.py`` checks the exact version.

    Returns:
        Whether the patch was applied. False if Streamlit's private methods differ from those of version 1.67.
    """
    client = getattr(starlette_websocket, "StarletteSessionClient", None)
    context = getattr(script_run_context, "ScriptRunContext", None)
    write, reset = getattr(client, "write_forward_msg", None), getattr(context, "reset", None)
    if client is None or context is None or not callable(write) or not callable(reset):
        return False
    if [*inspect.signature(write).parameters] != ["self", "msg"]:
        return False
    if "cached_message_hashes" not in inspect.signature(reset).parameters:
        return False

    def write_shortened(self: Any, msg: ForwardMsg) -> None:  # noqa: ANN401 - Streamlit's
        cache = self.__dict__.get(ATTRIBUTE)
        if cache is None:
            cache = self.__dict__[ATTRIBUTE] = BrowserMessageCache(int(config.get_option("global.maxCachedMessageAge")))
        sent = cache.shorten(msg)
        write(self, sent)
        cache.record(sent)

    def reset_uncached(self: Any, *args: Any, cached_message_hashes: object = None, **kwargs: Any) -> None:  # noqa: ANN401
        reset(self, *args, **kwargs)

    client.write_forward_msg, context.reset = write_shortened, reset_uncached
    return True
