"""The classes of a story (a step-by-step explanation): ``HeadData``, ``Step`` and ``LazyStep``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, SupportsIndex

import numpy as np

import attention_core as ac
from app.words.i18n import _, escape_markdown
from attention_core.analysis.matrix.informative_query import is_word
from attention_core.inputs.source import Source


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadData:
    """One variant computed on one head of the input.

    Attributes:
        attention: the variant with its settings.
        source: the source of the input.
        qkv: the queries, keys and values of the input.
        head: the shown head.
        causal: whether later tokens are hidden.
        parts: the variant's intermediate results on this head, by name.
        weights: the variant's attention matrix, ``[n, n]``.
        reference: the matrix that errors are relative to, ``[n, n]``.
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
        """The mask of the pairs in which the query can attend to the key, ``bool [n, n]``."""
        n = len(self.weights)
        return np.tri(n, dtype=bool) if self.causal else np.ones((n, n), bool)

    def setting(self, name: str) -> Any:  # noqa: ANN401 - of the setting's own type
        """Return the current value of one of the variant's settings."""
        return getattr(self.attention.params, name)

    def token(self, i: SupportsIndex) -> str:
        """Return a token's label, escaped for a sentence."""
        return escape_markdown(self.labels[i])

    @property
    def last_word(self) -> int:
        """The default query: the last word, or the last token without words. Special tokens are skipped if possible."""
        tokens = [i for i, added in enumerate(self.qkv.special) if not added]
        words = [i for i in tokens if is_word(self.qkv.tokens[i])]
        return max(words or tokens, default=len(self.labels) - 1)

    def masked(self, values: np.ndarray) -> np.ndarray:
        """Return a query-key matrix for the board, with NaN where the query must not attend to the key."""
        return np.where(self.visible, values, np.nan)


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """One step of a story.

    Attributes:
        title: one to three words; empty if the function is decorated with ``lazy_step``, which has the title.
        mechanism: one to three sentences above the figures, without numbers from the data, which say how the variant
            computes this step.
        formula: the step in LaTeX.
        shapes: the shapes of the shown arrays, by LaTeX symbol.
        findings: one or two sentences with the most important numbers measured on the data. They are at the top of the
            page in bold, or below the figures if the step is the first or has a ``headline``.
        details: further numbers, below the figures; may be empty.
        draw: a function that draws the figures; its argument is a key prefix for the elements. If it returns a text,
            this is the sentence at the top of the page, for numbers that are measured while the figures are drawn.
        headline: the sentence at the top of the page. If it is empty, the findings are there, and in the first step the
            variant's summary.
    """

    title: str = ""
    mechanism: str
    formula: str
    shapes: Mapping[str, tuple[int, ...]]
    findings: str
    draw: Callable[[str], str | None]
    details: str = ""
    headline: str = ""


class LazyStep:
    """A step that is expensive to build, and is built when it is first shown.

    Args:
        title: one to three words.
        build: builds the step.
    """

    def __init__(self, title: str, build: Callable[[], Step]) -> None:
        self.title, self._build = title, build
        self._built: Step | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the type of the step's attribute
        """Return an attribute of the step, building the step at the first access."""
        # ``cached_property`` is not used: before Python 3.12, it holds one lock for all sessions while a step is built.
        if self._built is None:
            self._built = self._build()
        return getattr(self._built, name)


P = ParamSpec("P")


def lazy_step(title: str) -> Callable[[Callable[P, Step]], Callable[P, LazyStep]]:
    """Return a decorator for a function that builds a step, so that it is called only when the step is shown.

    Args:
        title: the title of the step, which its tab shows before the step is built. It is translated here.
    """

    def decorate(build: Callable[P, Step]) -> Callable[P, LazyStep]:
        @wraps(build)
        def postponed(*args: P.args, **kwargs: P.kwargs) -> LazyStep:
            return LazyStep(_(title), partial(build, *args, **kwargs))

        return postponed

    return decorate


Story = Callable[[HeadData], tuple[Step | LazyStep, ...]]
"""Type of the function ``steps(data)`` in each module of ``stories``."""
