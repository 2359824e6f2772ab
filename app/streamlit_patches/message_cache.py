"""Which large messages a browser still holds, reckoned as they are sent, in the order in which it reads them.

A browser keeps a large message until some runs have ended without it, and tells with each request which it holds; the
server then names these by their hashes alone. But by the time it answers, a run that was under way has ended, and what
was told of may be gone: the browser then gives up, and the page is dead. It takes no more than clicks that do not wait.
"""

import inspect
from typing import Any

from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.web.server.starlette import starlette_websocket

MIRROR = "_held_by_browser"
"""A connection's attribute."""


class Held:
    """What the browser at the other end of a connection holds, by the rules of Streamlit 1.67's page.

    Args:
        oldest: runs that may end without a message before it is let go.
    """

    def __init__(self, oldest: int) -> None:
        self._oldest, self._runs = oldest, 0
        self._held: dict[str, tuple[int, str]] = {}  # by hash: runs ended when it was last used, and whose part it is

    def named(self, message: ForwardMsg) -> ForwardMsg:
        """What to send for a message: its name where the browser holds it, or itself."""
        held = message.metadata.cacheable and message.hash in self._held
        return create_reference_msg(message) if held else message

    def read(self, message: ForwardMsg) -> None:
        """Take note of what was sent; one too large to be sent has become another by then, which nobody keeps."""
        kind, name = message.WhichOneof("type"), message.ref_hash or message.hash
        if kind == "script_finished":
            self._end(message)
        elif kind == "ref_hash" or message.metadata.cacheable:
            _, part = self._held.get(name, (0, message.delta.fragment_id))
            self._held[name] = self._runs, part

    def _end(self, message: ForwardMsg) -> None:
        if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return
        self._runs += 1
        parts = message.metadata.run.fragment_ids
        self._held = {
            name: (used, part)
            for name, (used, part) in self._held.items()
            if self._runs - used <= self._oldest or (parts and part not in parts)
        }


def mirror() -> bool:
    """Let messages be named by their hashes only where the browser surely holds them, if Streamlit does it as in 1.67.

    The rules of ``Held`` are those of one version's JavaScript: ``patches.py`` checks the exact version.

    Returns:
        Whether it could be done: this rests on methods that are none of Streamlit's promises.
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
        held = self.__dict__.get(MIRROR)
        if held is None:
            held = self.__dict__[MIRROR] = Held(int(config.get_option("global.maxCachedMessageAge")))
        sent = held.named(msg)
        write(self, sent)
        held.read(sent)

    def reset_unclaimed(self: Any, *args: Any, cached_message_hashes: object = None, **kwargs: Any) -> None:  # noqa: ANN401
        reset(self, *args, **kwargs)

    client.write_forward_msg, context.reset = write_shortened, reset_unclaimed
    return True
