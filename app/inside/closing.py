"""The last step of every story: the variant's matrix beside the one its errors are taken against."""

import numpy as np

from app.inside import pictures
from app.inside.pictures import Grid
from app.inside.step import Seen, Step
from app.naming import label, reference_name
from app.text import _
from attention_core.looks.factors import off, uniform
from attention_core.metrics.passport import shares_out


def beside_softmax(seen: Seen, sentence: str = "") -> Step:
    """The matrix, its reference (softmax for nearly all) and their difference on one board, on one scale.

    Args:
        seen: the variant on a head.
        sentence: what the story adds to the numbers that every variant has.
    """
    reference, own = reference_name(seen.attention), seen.attention.variant.reference is not None
    difference, sums = seen.weights - seen.reference, seen.weights.sum(-1)
    told = _(
        "The matrix of **{name}** is off by {error:.0%} from {reference}'s, where looking everywhere alike would be "
        "off by {zero:.0%}.",
        name=label(seen.attention),
        reference=reference,
        error=off(seen.weights, seen.reference),
        zero=off(uniform(visible(seen)), seen.reference),
    )
    if shares_out(sums.min(), sums.max(), float(np.maximum(-seen.weights, 0).sum() / len(sums))):
        wrong = np.abs(difference).sum(-1).mean() / 2
        told += " " + _(
            "It puts {wrong:.0%} of a row's mass on other tokens than {reference} does.",
            wrong=wrong,
            reference=reference,
        )

    def draw(key: str) -> None:
        named = (
            (label(seen.attention), "", seen.weights),
            (_("Softmax") if not own else reference[0].upper() + reference[1:], "", seen.reference),
            (_("Difference"), _("blue: more than {reference}, orange: less", reference=reference), difference),
        )
        pictures.grids(
            [
                Grid(title=title, caption=words, values=shown(seen, values), rows=seen.labels, columns=seen.labels)
                for title, words, values in named
            ],
            key,
        )

    n = len(seen.weights)
    return Step(
        title=_("Beside {reference}", reference=reference),
        formula=seen.attention.variant.formula,
        shapes={r"A": (n, n), "S" if own else r"\operatorname{softmax}(QK^\top/\sqrt d)": (n, n)},
        sentence=f"{told} {sentence}".rstrip(),
        draw=draw,
    )


def visible(seen: Seen) -> np.ndarray:
    """The pairs in which the query may see the key, ``bool [n, n]``."""
    n = len(seen.weights)
    return np.tri(n, dtype=bool) if seen.causal else np.ones((n, n), bool)


def shown(seen: Seen, values: np.ndarray) -> np.ndarray:
    """A matrix of queries and keys as a board shows it: masked where the query may not see the key."""
    return np.where(visible(seen), values, np.nan)
