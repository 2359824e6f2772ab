"""Which heads, tokens and variants the numbers of a view come from, in the words of its subtitle and of its files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from app.words.i18n import N_, _, _n

Joined = Literal["average", "median", "mean", "each"]
WORDS: dict[Joined, tuple[str, str]] = {
    "average": (N_("average of {n} head"), N_("average of {n} heads")),
    "median": (N_("median of {n} head"), N_("median of {n} heads")),
    "mean": (N_("mean of {n} head"), N_("mean of {n} heads")),
    "each": (N_("all {n} head"), N_("all {n} heads")),
}
"""What is said of several heads, by how their numbers become one."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What the numbers of a view come from.

    Attributes:
        head: the head, None for all of them.
        heads: how many heads the input has; 0 on a page that reads no input.
        joined: how the numbers of several heads become one: by averaging the matrices, by the median or the mean of
            each head's number, or not at all.
        seeds: sequences that are drawn, whose numbers are put together like those of heads.
        n: tokens of the input.
        tokens: the most tokens that are measured; more than ``n`` where longer sequences are made or read.
        shortest: the fewest, where several lengths are measured.
        variants: words of the variants measured; None for those that the visitor compares.
        causal: whether the future is hidden; None where the visitor's switch decides.
        told: what else a file says of where its numbers come from, by name.
    """

    head: int | None = None
    heads: int = 0
    joined: Joined = "average"
    seeds: int = 1
    n: int = 0
    tokens: int = 0
    shortest: int | None = None
    variants: tuple[str, ...] | None = None
    causal: bool | None = None
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def _only(self) -> int | None:
        """The one head that takes part; None where there are several."""
        return 0 if self.heads == 1 and self.joined != "average" else self.head

    def heads_in_words(self) -> str:
        """The heads as a subtitle names them: ``head 3``, ``median of 12 heads``."""
        if self._only is None:
            told = _n(*WORDS[self.joined], n=self.heads)
            return told if self.seeds == 1 else _("{heads}, {n} seeds", heads=told, n=self.seeds)
        told = _("head {head}", head=self._only)
        if self.seeds == 1:
            return told
        if self.joined == "mean":
            return _("{head}, mean of {n} seeds", head=told, n=self.seeds)
        return _("{head}, median of {n} seeds", head=told, n=self.seeds)

    def heads_in_file(self) -> str:
        """The heads as a file names them, which holds a row for each head where a subtitle names their median."""
        if self._only is not None:
            return _("head {head}", head=self._only)
        joined: Joined = "average" if self.joined == "average" else "each"
        return _n(*WORDS[joined], n=self.heads)

    def every_head(self) -> "Scope":
        """The scope of a file that holds the whole input."""
        return replace(self, head=None, joined="each", seeds=1, tokens=self.n, shortest=None, variants=())

    def tokens_in_words(self) -> str:
        """The tokens: ``300 tokens``, ``256 of 300 tokens``, ``16 to 2,048 tokens``."""
        if self.shortest is not None and self.shortest < self.tokens:
            return _("{first:,} to {last:,} tokens", first=self.shortest, last=self.tokens)
        if self.tokens < self.n:
            return _n("{shown} of {n} token", "{shown} of {n} tokens", n=self.n, shown=self.tokens)
        return _n("{n} token", "{n} tokens", n=self.tokens)
