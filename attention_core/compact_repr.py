"""A base class for records that hold arrays. Their ``repr`` shows each array's type and shape, not its numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import dataclass_transform

MAX_LENGTH = 60
"""Maximum number of characters shown of a value that is not an array; longer values are cut."""


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True)
class CompactRepr:
    """A base class that makes its subclasses frozen dataclasses with a short ``repr`` and equality by identity."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, kw_only=True, repr=False)(cls)

    def __repr__(self) -> str:
        parts = (f"{each.name}={_brief(getattr(self, each.name))}" for each in fields(self) if each.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(parts)})"


def _brief(value: object) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_brief(each)}" for name, each in value.items()) + "}"
    text = repr(value)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
