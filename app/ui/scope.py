"""The scope of a view (the heads, tokens and variants that its numbers come from), as text for subtitles and files.

A view is one of the charts or tables that a page can show.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from app.words.i18n import _, _n

Aggregation = Literal["average", "median", "mean", "each"]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The heads, tokens and variants that the numbers of a view come from.

    Attributes:
        head: index of the head; None for all heads.
        heads: number of heads of the input; 0 on a page that uses no input.
        aggregation: how the numbers of several heads are combined: by averaging the matrices, by the median or mean
            over the heads' numbers, or not at all ("each").
        seeds: number of random sequences that are measured; their numbers are combined like those of heads.
        n: tokens of the input.
        tokens: largest number of tokens measured; more than ``n`` if longer sequences are generated or read.
        shortest: smallest number of tokens, if several lengths are measured.
        queries: number of queries if the keys are those of another sequence; the numbers of tokens are then those of
            keys. 0 for queries and keys of the same tokens.
        variants: the variants measured, with their settings as in links; None for those that the visitor compares.
        causal: whether the causal mask is on; None if the visitor's switch decides.
        facts: further facts about the numbers' origin that a file states, by name.
        subtitle: subtitle text if the numbers depend on the sizes of the input only; empty to describe the input;
            None if the numbers do not depend on the input.
    """

    head: int | None = None
    heads: int = 0
    aggregation: Aggregation = "average"
    seeds: int = 1
    n: int = 0
    tokens: int = 0
    shortest: int | None = None
    queries: int = 0
    variants: tuple[str, ...] | None = None
    causal: bool | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    subtitle: str | None = ""

    @property
    def _single_head(self) -> int | None:
        """The only head that takes part; None if there are several."""
        return 0 if self.heads == 1 and self.aggregation != "average" else self.head

    def describe_heads(self) -> str:
        """Return the heads as text for a subtitle: ``head 3``, ``median of 12 heads``."""
        if self._single_head is None:
            text = _all_heads(self.aggregation, self.heads)
            return text if self.seeds == 1 else _("{heads}, {n} seeds", heads=text, n=self.seeds)
        text = _("head {head}", head=self._single_head)
        if self.seeds == 1:
            return text
        if self.aggregation == "mean":
            return _("{head}, mean of {n} seeds", head=text, n=self.seeds)
        return _("{head}, median of {n} seeds", head=text, n=self.seeds)

    def describe_file_heads(self) -> str:
        """Return the heads as text for a file, which has a row for each head even if the page shows their median."""
        if self._single_head is not None:
            return _("head {head}", head=self._single_head)
        aggregation: Aggregation = "average" if self.aggregation == "average" else "each"
        return _all_heads(aggregation, self.heads)

    def with_all_heads(self) -> "Scope":
        """Return the scope of a file that holds the whole input."""
        return replace(self, head=None, aggregation="each", seeds=1, tokens=self.n, shortest=None, variants=())

    def describe_tokens(self) -> str:
        """Return the tokens as text: ``300 tokens``, ``256 of 300 tokens``, ``5 queries · 9 keys``."""
        if self.queries:
            keys = _n("{n} key", "{n} keys", n=self.tokens)
            if self.shortest is not None and self.shortest < self.tokens:
                keys = _("{first:,} to {last:,} keys", first=self.shortest, last=self.tokens)
            return f"{_n('{n} query', '{n} queries', n=self.queries)} · {keys}"
        if self.shortest is not None and self.shortest < self.tokens:
            return _("{first:,} to {last:,} tokens", first=self.shortest, last=self.tokens)
        if self.tokens < self.n:
            return _n("{shown:,} of {n:,} token", "{shown:,} of {n:,} tokens", n=self.n, shown=self.tokens)
        return _n("{n:,} token", "{n:,} tokens", n=self.tokens)


def _all_heads(aggregation: Aggregation, n: int) -> str:
    """Return text for n heads whose numbers are combined: ``median of 12 heads``."""
    return {
        "average": _n("average of {n} head", "average of {n} heads", n=n),
        "median": _n("median of {n} head", "median of {n} heads", n=n),
        "mean": _n("mean of {n} head", "mean of {n} heads", n=n),
        "each": _n("all {n} head", "all {n} heads", n=n),
    }[aggregation]
