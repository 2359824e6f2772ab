"""The errors a user can cause: each is one sentence with its remedy.

Anything else that is raised is a bug and must reach the log. An error keeps its template apart from the values in it,
so that a screen may translate the sentence before it fills the values in.
"""

import difflib
from collections.abc import Iterable
from functools import partial
from typing import Any


class LabError(Exception):
    """A sentence for the user, with what to do about it.

    Args:
        template: the sentence, with ``{name}`` where a value stands.
        **fields: the values.
    """

    def __init__(self, template: str, **fields: object) -> None:
        super().__init__(template.format(**fields))
        self.template = template
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception's own way is to be made from its words alone, which may hold braces by now.
        return partial(type(self), self.template, **self.fields), (), self.__dict__


class UnknownVariantError(LabError):
    """No attention variant has this key."""


class SettingError(LabError):
    """A setting does not exist, has the wrong type or lies out of bounds."""


class NotCausalError(LabError):
    """The variant mixes positions before it attends, so it cannot hide the future."""


class ShapeError(LabError):
    """Query, key and value do not fit together."""


class InputError(LabError):
    """Text, synthetic specification or upload cannot be turned into queries, keys and values."""


class ModelError(LabError):
    """A model cannot be had or is of a kind that cannot be read."""


class WorkerError(LabError):
    """What was to compute this is lost or out of reach; asked again, it may succeed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint in an error about a name: which known one was probably meant, or a list of what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"There are: {', '.join(names)}." if names else "It takes none."
