"""What widgets read of the session's state: one value each, for which Streamlit copies all of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state import safe_session_state, session_state


class Filtered(Mapping[str, Any]):
    """The values under names of the app's own, as ``filtered_state`` holds them, each read when it is asked for.

    Args:
        state: the session's.
        whole: what copies all of them.
    """

    def __init__(self, state: Any, whole: Any) -> None:  # noqa: ANN401 - Streamlit's
        self._state, self._whole = state, whole

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - any widget's
        if session_state.is_element_id(name) or session_state._is_internal_key(name):
            raise KeyError(name)
        return self._state[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole(self._state))

    def __len__(self) -> int:
        return len(self._whole(self._state))

    def __repr__(self) -> str:
        return repr(self._whole(self._state))


def one_by_one() -> bool:
    """Let widgets read the one value they ask for, where Streamlit reads it as it does in 1.67.

    Select boxes, sliders and fields for text ask at every run whether there is none, which took a twentieth of one.

    Returns:
        Whether it could be done: this rests on what is none of Streamlit's promises.
    """
    safe = getattr(safe_session_state, "SafeSessionState", None)
    whole = getattr(safe, "filtered_state", None)
    if not isinstance(whole, property) or whole.fget is None:
        return False
    if not all(callable(getattr(session_state, name, None)) for name in ("is_element_id", "_is_internal_key")):
        return False
    copy = whole.fget
    safe.filtered_state = property(lambda state: Filtered(state, copy))  # type: ignore[union-attr]
    return True
