"""The last step of every explanation on the Inside page: the variant's matrix next to its reference, often softmax."""

from collections.abc import Sequence
from functools import partial

import numpy as np

import attention_core as ac
from app.words.i18n import _, enumeration, escape_markdown, paragraph
from app.words.labels import label, reference_name
from attention_core.analysis.matrix import inside
from attention_core.metrics.passport import rows_are_distributions
from pages.inside import pictures
from pages.inside.headline import MIN_SHOWN_ERROR, error_of_matrix, needs
from pages.inside.story import HeadData, LazyStep, Step


def compare_with_reference(data: HeadData, sentence: str = "") -> LazyStep:
    """Build the step that draws the matrix, its reference (usually softmax) and their difference on one scale.

    Args:
        data: the variant on a head.
        sentence: a text about the whole matrix, shown below the figures.
    """
    return LazyStep(_("Comparison"), partial(_compare, data, sentence))


def error_place(difference: np.ndarray, labels: Sequence[str], reference: str) -> str:
    """Return where the largest errors of a matrix are.

    Args:
        difference: the matrix minus the reference, ``[n, n]``.
        labels: one label per token.
        reference: the reference's name.
    """
    found = inside.strong_column(np.square(difference))
    if not found:
        return _("The third matrix is the first one minus {reference}'s matrix.", reference=reference)
    key, share = found
    return _(
        "{share:.0%} of the squared error is in one column, the key “{token}”.",
        share=share,
        token=escape_markdown(labels[key]),
    )


def untrained(attention: ac.Attention) -> str:
    """Return the sentence that names what the variant learns in a model and has not learned here, or an empty text."""
    parts = [_(each.title) for each in attention.variant.trainable if each.name not in attention.params.learned]
    if not parts:
        return ""
    return _(
        "A model that is trained with {name} learns {parts}. Here, they are not learned.",
        name=_(attention.title),
        parts=enumeration(parts),
    )


def _compare(data: HeadData, sentence: str) -> Step:
    reference, own = reference_name(data.attention), data.attention.variant.reference is not None
    difference, sums = data.weights - data.reference, data.weights.sum(-1)
    negative = np.maximum(-data.weights, 0).sum() / len(sums)
    text = ""
    if rows_are_distributions(sums.min(), sums.max(), negative):
        wrong = np.abs(difference).sum(-1).mean() / 2
        if wrong >= MIN_SHOWN_ERROR:
            text = _(
                "To match {reference}, {wrong:.0%} of a row's weight would have to move to other keys, on average.",
                wrong=wrong,
                reference=reference,
            )

    def draw(key: str) -> None:
        signs = _("blue: more weight than in {reference}, orange: less", reference=reference)
        pictures.board(
            key,
            pictures.pair_panel(data, label(data.attention), data.weights, mark=pictures.RESULT),
            pictures.pair_panel(data, reference[0].upper() + reference[1:] if own else _("Softmax"), data.reference),
            pictures.pair_panel(data, _("Difference"), difference, signs),
        )

    n = len(data.weights)
    return Step(
        mechanism=error_place(difference, data.labels, reference),
        formula=rf"\text{{{_('matrix error')}}} = \frac{{\lVert {pictures.symbol(pictures.RESULT, 'A')} - S \rVert_F}}"
        r"{\lVert S \rVert_F}",
        shapes={"A": (n, n), "S" if own else r"S = \operatorname{softmax}(QK^\top/\sqrt d)": (n, n)},
        findings=error_of_matrix(data),
        details=paragraph(text, sentence, untrained(data.attention), needs(data)),
        draw=draw,
    )
