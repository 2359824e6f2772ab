"""The last step of every explanation on the Inside page: the variant's matrix next to its reference, often softmax."""

from functools import partial

import numpy as np

from app.words.i18n import _, paragraph
from app.words.labels import label, reference_name
from attention_core.analysis.low_rank.factors import relative_error_of, uniform
from attention_core.metrics.passport import rows_are_distributions
from pages.inside import pictures
from pages.inside.story import Later, Seen, Step


def compare_with_reference(seen: Seen, sentence: str = "") -> Later:
    """Build the step that draws the matrix, its reference (usually softmax) and their difference on one scale.

    Args:
        seen: the variant on a head.
        sentence: a text of the story that is added to the error numbers.
    """
    return Later(_("Comparison"), partial(_compare, seen, sentence))


def _compare(seen: Seen, sentence: str) -> Step:
    reference, own = reference_name(seen.attention), seen.attention.variant.reference is not None
    difference, sums = seen.weights - seen.reference, seen.weights.sum(-1)
    negative = np.maximum(-seen.weights, 0).sum() / len(sums)
    text = _(
        "Error compared with {reference}: {error:.0%}. Equal weights for all visible keys would give an "
        "error of {zero:.0%}.",
        reference=reference,
        error=relative_error_of(seen.weights, seen.reference),
        zero=relative_error_of(uniform(seen.visible), seen.reference),
    )
    if rows_are_distributions(sums.min(), sums.max(), negative):
        wrong = np.abs(difference).sum(-1).mean() / 2
        text = paragraph(
            text,
            _(
                "On average, {wrong:.0%} of a row's weight falls on different keys than it does in {reference}.",
                wrong=wrong,
                reference=reference,
            ),
        )

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
            "Together, the steps define one weight for each query–key pair. Here, these weights are "
            "compared with {reference}.",
            reference=reference,
        ),
        formula=seen.attention.variant.formula.replace("A", pictures.symbol(0, "A"), 1),
        shapes={r"A": (n, n), "S" if own else r"\operatorname{softmax}(QK^\top/\sqrt d)": (n, n)},
        findings=paragraph(text, sentence),
        draw=draw,
    )
