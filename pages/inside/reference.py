"""The last step of every explanation on the Inside page: the variant's matrix next to its reference, often softmax."""

from functools import partial

import numpy as np

from app.words.i18n import _, paragraph
from app.words.labels import label, reference_name
from attention_core.analysis.low_rank.factors import relative_error_of, uniform
from attention_core.metrics.passport import rows_are_distributions
from pages.inside import pictures
from pages.inside.story import Later, Seen, Step

SAME = 0.005
"""Errors below this value would be printed as 0%."""


def compare_with_reference(seen: Seen, sentence: str = "") -> Later:
    """Build the step that draws the matrix, its reference (usually softmax) and their difference on one scale.

    Args:
        seen: the variant on a head.
        sentence: a text of the story that is added to the error numbers.
    """
    return Later(_("Comparison"), partial(_compare, seen, sentence))


def error_sentence(reference: str, error: float, baseline: float) -> str:
    """Return the sentences about the error of a matrix.

    Args:
        reference: name of the matrix that the error is relative to.
        error: its error.
        baseline: the error of equal weights for all visible keys.
    """
    if error < SAME:
        return _(
            "The weights differ from those of {reference} by less than {same:.1%}.", reference=reference, same=SAME
        )
    text = _(
        "The matrix error compared with {reference} is **{error:.0%}**. With equal weights for all keys, it would be "
        "{baseline:.0%}.",
        reference=reference,
        error=error,
        baseline=baseline,
    )
    if error <= baseline or f"{error:.0%}" == f"{baseline:.0%}":
        return text
    return paragraph(text, _("Equal weights are therefore closer to {reference}.", reference=reference))


def _compare(seen: Seen, sentence: str) -> Step:
    reference, own = reference_name(seen.attention), seen.attention.variant.reference is not None
    difference, sums = seen.weights - seen.reference, seen.weights.sum(-1)
    negative = np.maximum(-seen.weights, 0).sum() / len(sums)
    details, text = (
        sentence,
        error_sentence(
            reference,
            relative_error_of(seen.weights, seen.reference),
            relative_error_of(uniform(seen.visible), seen.reference),
        ),
    )
    if rows_are_distributions(sums.min(), sums.max(), negative):
        wrong = np.abs(difference).sum(-1).mean() / 2
        moves = _(
            "To match {reference}, {wrong:.0%} of a row's weight would have to move to other keys, on average.",
            wrong=wrong,
            reference=reference,
        )
        details = paragraph(moves if wrong >= SAME else "", sentence)

    def draw(key: str) -> None:
        signs = _("blue: more weight than {reference}, orange: less weight", reference=reference)
        pictures.board(
            key,
            pictures.pairs(seen, label(seen.attention), seen.weights, mark=0),
            pictures.pairs(seen, reference[0].upper() + reference[1:] if own else _("Softmax"), seen.reference),
            pictures.pairs(seen, _("Difference"), difference, signs),
        )

    n = len(seen.weights)
    return Step(
        mechanism=_(
            "The steps give each query–key pair one weight. The third matrix shows how this weight differs from that "
            "of {reference}.",
            reference=reference,
        ),
        formula=seen.attention.variant.formula.replace("A", pictures.symbol(0, "A"), 1),
        shapes={r"A": (n, n), "S" if own else r"\operatorname{softmax}(QK^\top/\sqrt d)": (n, n)},
        findings=text,
        details=details,
        draw=draw,
    )
