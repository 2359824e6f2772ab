"""The Forgetting chapter of the Causal page: curves of an early token's weight, and sentences about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.words.finding import Finding
from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core.analysis.state.token_weight import first_tokens_share
from attention_core.formatting import percent
from attention_core.variant import SOFTMAX

MIN_SHARE = 1e-5
"""Smallest weight that the sentences give as a number."""


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
    """Return the token's median weight in the later half of the rows, with each variant of ``_weights``."""
    n = len(labels)
    if n == 1:
        return Finding(_("The input has only one token, which receives all the weight. Use a longer input."))
    first = max(token, n // 2)
    weights = _weights(lines, {line.word: float(np.median(line.token_weights[first - token :])) for line in lines})
    values = {"token": token, "label": escape_markdown(labels[token]), "weights": enumeration(weights)}
    even = percent(float(np.median(1 / np.arange(first + 1, n + 1))))
    return Finding(
        _("**In the last row, token {token} “{label}” receives {weights}.**", **values)
        if first == n - 1
        else _(
            "**In rows {first} to {last}, token {token} “{label}” receives {weights} (medians).**",
            first=first,
            last=n - 1,
            **values,
        ),
        paragraph(
            _("With equal weights, the token would receive {even}.", even=even),
            _("Linear attention adds every token to one sum, so each new token dilutes all earlier ones."),
        ),
    )


def small_percent(weight: float) -> str:
    """Return a weight as a percentage, without powers of ten."""
    return percent(weight) if weight >= MIN_SHARE else _("less than {least}", least=f"{100 * MIN_SHARE:g}%")


def quarter_text(lines: Sequence[Line], count: int) -> str:
    """Return the weight of the first ``count`` tokens in the last row, for the variants in the headline."""
    shares = {line.word: first_tokens_share(line.weights[-1], count) for line in lines}
    return _n(
        "In the last row, the first token receives {weights}.",
        "In the last row, the first {n} tokens receive {weights}.",
        n=count,
        weights=enumeration(_weights(lines, shares)),
    )


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
