"""The Forgetting chapter of the Causal page: curves of an early token's weight, and sentences about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.words.finding import Finding
from app.words.i18n import _, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core.formatting import percent
from attention_core.variant import SOFTMAX

MIN_SHARE = 1e-5
"""Smallest weight that the sentences give as a number."""

DILUTED_RATIO, LARGE_RATIO = 2, 10
"""Largest ratio to equal weights of a diluted weight, and smallest ratio of a weight that is forgotten or returns."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """A variant whose attention weights are followed.

    Attributes:
        name: name on screen.
        word: name in files.
        weights: causal matrix, ``[n, n]``.
        token_weights: weights of the followed token in its own row and in all later rows.
        law: how the weight changes: ``"power"`` of the row's number, ``"factor"`` per token, or ``""`` for neither.
        colour: index of the colour.
        dash: dash pattern of the line.
    """

    name: str
    word: str
    weights: np.ndarray
    token_weights: np.ndarray
    law: str
    colour: int
    dash: str


def summary(lines: Sequence[Line], token: int, labels: Sequence[str]) -> Finding:
    """Return how the variants differ, and the token's median weight in the later half of the rows."""
    n = len(labels)
    if n == 1:
        return Finding(_("The input has only one token, which receives all the weight. Use a longer input."))
    first = max(token, n // 2)
    medians = {line.word: float(np.median(line.token_weights[first - token :])) for line in lines}
    values = {"token": token, "label": escape_markdown(labels[token])}
    weights = enumeration(_weights(lines, medians))
    even = float(np.median(1 / np.arange(first + 1, n + 1)))
    numbers = (
        _("In the last row, token {token} “{label}” receives {weights}.", weights=weights, **values)
        if first == n - 1
        else _(
            "In rows {first} to {last}, token {token} “{label}” receives {weights} (medians).",
            first=first,
            last=n - 1,
            weights=weights,
            **values,
        )
    )
    message = _message(lines, medians, even)
    return Finding(
        paragraph(f"**{message}**", numbers) if message else f"**{numbers}**",
        paragraph(
            _("With equal weights, the token would receive {even}.", even=percent(even)),
            _("Linear attention adds every token to one sum, so each new token dilutes all earlier ones."),
        ),
    )


def _message(lines: Sequence[Line], medians: Mapping[str, float], even: float) -> str:
    """Return how linear attention, retention and softmax treat the token; empty if one of them treats it otherwise.

    Args:
        lines: the variants.
        medians: median weight of the token in the later rows, by the word of its line.
        even: median of equal weights in these rows.
    """
    by_law = {law: [line for line in lines if line.law == law] for law in ("power", "factor", "")}
    if not all(by_law.values()):
        return ""
    [linear], decaying, [softmax] = by_law.values()
    retention = _least(decaying, medians)
    dilutes = even / DILUTED_RATIO <= medians[linear.word] <= even * DILUTED_RATIO
    forgets = medians[retention.word] <= even / LARGE_RATIO
    lowest = np.minimum.accumulate(softmax.token_weights)
    returns = bool((softmax.token_weights >= LARGE_RATIO * lowest).any())
    if not (dilutes and forgets and returns):
        return ""
    return _(
        "Linear dilutes this token, {name} discards it, and softmax returns to it in some rows.",
        name=in_words(retention.name),
    )


def small_percent(weight: float) -> str:
    """Return a weight as a percentage, without powers of ten."""
    return percent(weight) if weight >= MIN_SHARE else _("less than {least}", least=f"{100 * MIN_SHARE:g}%")


def _weights(lines: Sequence[Line], weights: Mapping[str, float]) -> list[str]:
    """Return the weight with linear attention, with softmax and with the decay for which it is smallest.

    ``weights`` has one weight per variant, by the word of its line.
    """
    shown = [line for law in ("power", "") for line in lines if line.law == law]
    if decaying := [line for line in lines if line.law == "factor"]:
        shown.append(_least(decaying, weights))
    names = {line.word: _("softmax") if line.word == SOFTMAX else in_words(line.name) for line in shown}
    return [_("{weight} from {name}", weight=small_percent(weights[word]), name=name) for word, name in names.items()]


def _least(lines: Sequence[Line], weights: Mapping[str, float]) -> Line:
    return min(lines, key=lambda line: weights[line.word])
