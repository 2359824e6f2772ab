"""A patch for widgets that read one value of the session state, for which Streamlit copies the whole state."""

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state import safe_session_state, session_state


class Filtered(Mapping[str, Any]):
    """A lazy replacement for ``filtered_state``, the values under the app's own names: reads each value on demand.

    Args:
        state: Streamlit's session state.
        whole: the original getter, which copies all values.
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
    """Let widgets read a single value of the session state without a copy of the whole state.

    Select boxes, sliders and text fields check at every run whether a value exists. The copies took 5 % of a run.

    Returns:
        Whether the patch was applied. False if Streamlit's private methods differ from those of version 1.67.
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
