"""Numbers computed from the results of the swap experiment, in which a variant replaces softmax in a model.

They are scores of a model, such as its perplexity, and curves over the variant's budget or over the replaced layers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import mean

import torch
from torch import Tensor

from attention_core import registry
from attention_core.experiments.swap.rows import COPY_DISTANCE, PERIOD, CopyRow, OutputErrorRow, ReadingRow, SwapRow
from attention_core.model_patching import UNIFORM


@dataclass(frozen=True, kw_only=True)
class HiddenPairs:
    """The pairs of a text that a fixed pattern hides, although softmax attends to them.

    Attributes:
        share: share of the hidden pairs among all pairs of a query with its own or an earlier token.
        max_keys: largest number of tokens that a query attends to.
        window: the pattern's window; None if it has no such setting.
        without_first: share of the queries that cannot attend to the first token.
        hides_copied: whether most queries of the copy test cannot attend to the token that they should copy.
        layers_to_copy: smallest number of layers that connect most queries of the copy test to the token that they
            should copy; None if no number of layers is enough.
        from_token: index, from 0, of the first token that is predicted without some of the tokens before it; the
            length of the text if there is no such token.
    """

    share: float
    max_keys: int
    window: int | None
    without_first: float
    hides_copied: bool
    layers_to_copy: int | None
    from_token: int


@dataclass(frozen=True, kw_only=True)
class Score:
    """The measurements of one model.

    Attributes:
        name: name on screen.
        perplexity: perplexity of the text; NaN if it is not known yet.
        copied: loss per copied token in nats, mean over the finished draws; NaN without finished draws.
        first: loss per token on its first occurrence, in nats; NaN if there is no finished draw.
        covered: number of tokens of the text if the variant has a fixed pattern that hides no pair of them, so that
            the variant equals softmax on this text; 0 otherwise.
        hidden: the pairs that the variant's fixed pattern hides; None without a fixed pattern.
        layers: number of replaced layers.
    """

    name: str
    perplexity: float
    copied: float
    first: float
    covered: int = 0
    hidden: HiddenPairs | None = None
    layers: int = 0

    @property
    def complete(self) -> bool:
        """True if the perplexity and the loss per copied token are known."""
        return not (math.isnan(self.perplexity) or math.isnan(self.copied))


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One point of a curve: a variant's perplexity and copying loss at ``x``, such as a budget or a number of layers.

    None replaces a number that is not measured yet.
    """

    x: float
    perplexity: float | None
    copied: float | None


@dataclass(frozen=True, kw_only=True)
class ErrorPoint:
    """The output error, perplexity and copying loss of one variant with its settings."""

    word: str
    output: float
    perplexity: float
    copied: float


def score(name: str, word: str, layers: tuple[int, ...], rows: Sequence[SwapRow]) -> Score:
    """Return the score of the model in which the variant ``word`` replaces softmax in ``layers``, from its rows."""
    own_rows = [row for row in rows if (row.word, row.layers) == (word, layers)]
    copy_rows = [row for row in own_rows if isinstance(row, CopyRow)]
    reading = next((row for row in own_rows if isinstance(row, ReadingRow)), None)
    return Score(
        name=name,
        perplexity=reading.perplexity if reading else math.nan,
        covered=reading.tokens if reading and layers and attends_to_all(word, reading.tokens) else 0,
        hidden=hidden_pairs(word, reading.tokens) if reading and layers else None,
        copied=mean(row.copied for row in copy_rows) if copy_rows else math.nan,
        first=mean(row.first for row in copy_rows) if copy_rows else math.nan,
        layers=len(layers),
    )


def attends_to_all(word: str, n: int) -> bool:
    """Return whether a fixed pattern allows every earlier token of a text of ``n`` tokens, as softmax does."""
    mask = _fixed_mask(word, n)
    return mask is not None and int(mask.sum()) == n * (n + 1) // 2


@lru_cache(256)
def hidden_pairs(word: str, n: int) -> HiddenPairs | None:
    """Return the pairs of a text of ``n`` tokens that a variant's fixed pattern hides; None without such a pattern."""
    mask, copy_mask = (_fixed_mask(word, length) for length in (n, 2 * PERIOD))
    if mask is None or copy_mask is None:
        return None
    reached, connected, layers = copy_mask, 0, 1
    while (share := reached.diagonal(-COPY_DISTANCE).double().mean()) < 0.5 and int(reached.sum()) > connected:
        connected, layers = int(reached.sum()), layers + 1
        # Because of the residual connections, a pair that one layer connects is connected after all later layers.
        reached = reached | (reached.double() @ copy_mask.double() > 0)
    incomplete = (mask.sum(-1) < torch.arange(1, n + 1)).nonzero()
    return HiddenPairs(
        share=1 - int(mask.sum()) / (n * (n + 1) // 2),
        max_keys=int(mask.sum(-1).max()),
        window=getattr(registry.from_word(word).params, "window", None),
        without_first=1 - float(mask[:, 0].double().mean()),
        hides_copied=bool(copy_mask.diagonal(-COPY_DISTANCE).double().mean() < 0.5),
        layers_to_copy=layers if share >= 0.5 else None,
        from_token=int(incomplete[0]) + 1 if len(incomplete) else n,
    )


def _fixed_mask(word: str, n: int) -> Tensor | None:
    """Return the causal mask of a variant's fixed pattern, ``bool [n, n]``; None if it has no fixed pattern."""
    if word == UNIFORM:
        return None
    mask = registry.from_word(word).mask(n, causal=True)
    return None if mask is None else mask.tril()


def lost_share(original: Score, changed: Score) -> float:
    """Return the share of the original model's gain from copying that a change loses: 0 for none of it, 1 for all.

    The gain is the difference between the losses on the first occurrence of the tokens and on their repetition.
    """
    saves = original.first - original.copied
    return (changed.copied - original.copied) / saves if saves > 0 else 0.0


def original_rows(rows: Sequence[SwapRow]) -> tuple[ReadingRow | None, CopyRow | None]:
    """Return the unchanged model's row for the text and its first row of the copy test; None for a missing row."""
    unchanged = [row for row in rows if not row.layers]
    reading = next((row for row in unchanged if isinstance(row, ReadingRow)), None)
    return reading, next((row for row in unchanged if isinstance(row, CopyRow)), None)


def curve_points(rows: Sequence[SwapRow], x: Callable[[SwapRow], float | None]) -> list[CurvePoint]:
    """Combine the rows of one curve into points, sorted by their position ``x(row)``.

    Rows whose position is None are left out.
    """
    numbers: dict[float, dict[str, float]] = {}
    for row in rows:
        position = x(row)
        if position is not None and isinstance(row, ReadingRow):
            numbers.setdefault(position, {})["perplexity"] = row.perplexity
        elif position is not None and isinstance(row, CopyRow):
            numbers.setdefault(position, {})["copied"] = row.copied
    return [
        CurvePoint(x=position, perplexity=values.get("perplexity"), copied=values.get("copied"))
        for position, values in sorted(numbers.items())
    ]


def error_points(rows: Sequence[SwapRow]) -> list[ErrorPoint]:
    """Return one point per variant with its settings; points with an unknown or non-finite number are left out."""
    numbers: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.layers:
            values = numbers.setdefault(row.word, {})
            if isinstance(row, OutputErrorRow):
                values["output"] = row.output
            elif isinstance(row, ReadingRow):
                values["perplexity"] = row.perplexity
            elif isinstance(row, CopyRow):
                values["copied"] = row.copied
    return [
        ErrorPoint(word=word, **values)
        for word, values in numbers.items()
        if len(values) == 3 and all(map(math.isfinite, values.values()))
    ]


def first_above(points: Sequence[CurvePoint], name: str, limit: float) -> float | None:
    """Return the smallest ``x`` at which the field ``name`` of a point exceeds ``limit``; None if no point does."""
    above = [point.x for point in points if getattr(point, name) is not None and getattr(point, name) > limit]
    return min(above, default=None)


def preserved_from(points: Sequence[CurvePoint], name: str, limit: float) -> float | None:
    """Return the smallest ``x`` such that the field ``name`` is at most ``limit`` there and at all later points.

    Return None if the last point exceeds the limit.
    """
    first = None
    for point in reversed([p for p in points if getattr(p, name) is not None]):
        if getattr(point, name) > limit:
            break
        first = point.x
    return first
