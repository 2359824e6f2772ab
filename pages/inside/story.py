"""What a story is made of: one variant on one head, and the steps from its queries and keys to its weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, SupportsIndex

import numpy as np

import attention_core as ac
from app.words.i18n import _, literal
from attention_core.inputs.source import Source


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """One variant on one head of the input, computed.

    Attributes:
        attention: the variant with its settings.
        source: where the input comes from.
        qkv: its record.
        head: the head looked at.
        causal: whether the future is hidden.
        parts: the variant's anatomy on this head, by name.
        weights: its matrix, ``[n, n]``.
        reference: the matrix its errors are taken against, ``[n, n]``.
        labels: one label per token, repeats numbered.
    """

    attention: ac.Attention
    source: Source
    qkv: ac.inputs.QKV
    head: int
    causal: bool
    parts: Mapping[str, np.ndarray]
    weights: np.ndarray
    reference: np.ndarray
    labels: tuple[str, ...]

    @property
    def visible(self) -> np.ndarray:
        """The pairs in which the query may see the key, ``bool [n, n]``."""
        n = len(self.weights)
        return np.tri(n, dtype=bool) if self.causal else np.ones((n, n), bool)

    def setting(self, name: str) -> Any:  # noqa: ANN401 - of the setting's own type
        """One of the variant's settings as it stands."""
        return getattr(self.attention.params, name)

    def token(self, i: SupportsIndex) -> str:
        """A token's label, for a sentence."""
        return literal(self.labels[i])

    @property
    def last_word(self) -> int:
        """The position of the last token that the tokenizer did not add, where there is one: a query to begin with."""
        return max((i for i, added in enumerate(self.qkv.special) if not added), default=len(self.labels) - 1)

    def masked(self, values: np.ndarray) -> np.ndarray:
        """A matrix of queries and keys as a board shows it: masked where the query may not see the key."""
        return np.where(self.visible, values, np.nan)


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """One step of a story.

    Attributes:
        title: what happens, in a few words; one that is told ``later`` has its title from there.
        formula: the same in LaTeX.
        shapes: the sizes of what is shown, by symbol in LaTeX.
        sentence: what it means, with numbers from the data.
        draw: draws its pictures; it is given a key for their elements.
    """

    title: str = ""
    formula: str
    shapes: Mapping[str, tuple[int, ...]]
    sentence: str
    draw: Callable[[str], None]


class Later:
    """A step that takes long to tell, told when it is the one shown.

    Args:
        title: what happens, in a few words.
        tell: makes the step.
    """

    def __init__(self, title: str, tell: Callable[[], Step]) -> None:
        self.title, self._tell = title, tell
        self._told: Step | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a step's own
        """What the step has, which is told at the first question."""
        # No cached_property: until Python 3.12 it holds one lock for all visitors while it waits for their turn.
        if self._told is None:
            self._told = self._tell()
        return getattr(self._told, name)


P = ParamSpec("P")


def later(title: str) -> Callable[[Callable[P, Step]], Callable[P, Later]]:
    """Have what tells a step called when that is the one shown; its title, to be translated, stands before."""

    def decorate(tell: Callable[P, Step]) -> Callable[P, Later]:
        @wraps(tell)
        def told(*args: P.args, **kwargs: P.kwargs) -> Later:
            return Later(_(title), partial(tell, *args, **kwargs))

        return told

    return decorate


Story = Callable[[Seen], tuple[Step | Later, ...]]
"""A file of ``stories`` named as its variant's key has one: ``steps(seen)``."""
