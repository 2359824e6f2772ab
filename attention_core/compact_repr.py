"""Records that hold arrays, printed in a line: arrays by their type and shape, not by their numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import dataclass_transform

LONGEST = 60
"""Characters of a value that is no array."""


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True)
class CompactRepr:
    """Makes what derives from it a frozen dataclass that prints briefly and equals itself alone."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, kw_only=True, repr=False)(cls)

    def __repr__(self) -> str:
        told = (f"{each.name}={_brief(getattr(self, each.name))}" for each in fields(self) if each.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(told)})"


def _brief(value: object) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_brief(each)}" for name, each in value.items()) + "}"
    told = repr(value)
    return told if len(told) <= LONGEST else told[: LONGEST - 1] + "…"
