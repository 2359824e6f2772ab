"""The Forgetting chapter of the Causal page: curves of an early token's weight, and sentences about them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.words.finding import Finding
from app.words.i18n import _, escape_markdown, paragraph
from attention_core import formatting
from attention_core.analysis.state.token_weight import TokenWeight
from attention_core.formatting import formatted
from attention_core.variant import SOFTMAX


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """A variant whose attention weights are followed.

    Attributes:
        name: name on screen.
        word: name in files.
        weights: causal matrix, ``[n, n]``.
        token_weight: weight of the followed token in later rows, with the fitted law.
        law: form of the fitted law: ``"power"`` of the row's number, ``"factor"`` per token, or ``""`` for none.
        colour: index of the colour.
        dash: dash pattern of the line.
    """

    name: str
    word: str
    weights: np.ndarray
    token_weight: TokenWeight
    law: str
    colour: int
    dash: str


def summary(lines: Sequence[Line], token: int, labels: Sequence[str]) -> Finding:
    """Return the token's weight in the last row, with linear attention, softmax and the variant where it is smallest.

    Args:
        lines: lines drawn, including linear attention and softmax.
        token: index of the followed token.
        labels: labels of the tokens.
    """
    n = len(labels)
    if n == 1:
        return Finding(_("The input has only one token, which receives all the weight. Use a longer input."))
    linear = next(line for line in lines if line.law == "power")
    softmax = next((line for line in lines if line.word == SOFTMAX), None)
    smallest = min(
        (line for line in lines if line is not linear), key=lambda line: float(line.token_weight.weights[-1])
    )
    values = {
        "n": n,
        "token": token,
        "name": escape_markdown(labels[token]),
        "linear": percent(linear.token_weight.weights[-1]),
        "first": linear.name,
        "least": percent(smallest.token_weight.weights[-1]),
        "other": smallest.name,
    }
    if softmax is None or softmax is smallest:
        text = _(
            "**With {first}, the last of {n} tokens gives {linear} of its attention weight to token {token} “{name}”. "
            "With {other}, it gives {least}.**",
            **values,
        )
    else:
        text = _(
            "**With {first}, the last of {n} tokens gives {linear} of its attention weight to token {token} “{name}”. "
            "With {other}, it gives {least}, and with softmax {weight}.**",
            **values,
            weight=percent(softmax.token_weight.weights[-1]),
        )
    return Finding(
        text,
        paragraph(
            _("Linear attention adds every token to one sum, so each new token dilutes all earlier ones."),
            _("With equal weights, every token would get {even}.", even=percent(1 / n)),
        ),
    )


def fitted_laws(lines: Iterable[Line]) -> str:
    """Return the text about the exponent of linear attention and the factor of the first line with a factor.

    The text is empty if the exponent is unknown.
    """
    fitted = [line for line in lines if line.law]
    power = next((line.token_weight.power for line in fitted if line.law == "power"), None)
    if power is None:
        return ""
    text = formatted(power, ".2f")
    for line in fitted:
        if line.law == "factor" and line.token_weight.factor is not None:
            return _(
                "With linear attention, the weight of the selected token in row i is approximately proportional to i "
                "to the power {power}. With {name}, the weight of this token is multiplied by {factor:.2f} at each "
                "later token, on average.",
                power=text,
                name=line.name,
                factor=line.token_weight.factor,
            )
    return _(
        "With linear attention, the weight of the selected token in row i is approximately proportional to i to the "
        "power {power}.",
        power=text,
    )


def percent(weight: float) -> str:
    """Return a weight in per cent."""
    return formatting.percent(weight) if weight >= 1e-5 else _("under 0.001%")
