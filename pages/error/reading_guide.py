"""Notes on how to read the chart of the Error page, and the definitions of the error metrics."""

import math
from collections.abc import Sequence

import attention_core as ac
from app.figures.lines.curve import Curve
from app.ui.about import describe_counts
from app.ui.chart import is_narrow
from app.words.i18n import _, _n, enumeration
from app.words.labels import sentence_name
from attention_core.experiments.error import SEEDS, UNIFORM, ErrorPoint
from pages.error.options import Question


def explain_marks(curves: Sequence[Curve], y_end: float, x_end: float | None) -> list[str]:
    """Return what the large points and the arrows mean, if drawn.

    Args:
        curves: the lines.
        y_end: upper end of the vertical axis.
        x_end: right end of the horizontal axis; None if it shows all points.
    """
    right = math.inf if x_end is None else x_end
    arrows = any(
        x > right or (y is not None and y > y_end) for line in curves for x, y in zip(line.x, line.y, strict=True)
    )
    return [
        _("Large points: the settings in the buttons above.")
        if any(line.large_index is not None for line in curves)
        else "",
        _("Arrows: lines that continue outside the chart.") if arrows else "",
        # A phone has no double click.
        _("Double-click the chart to show all points.") if arrows and not is_narrow() else "",
    ]


def notes(question: Question, points: Sequence[ErrorPoint]) -> list[str]:
    """Return the notes on variants and points that a reader of this chart may need, one or two sentences each."""
    sentences = []
    groups = dict(question.by_variant(points))
    for attention in groups:
        if attention.variant.reference is not None:
            sentences.append(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
    if any(p.low < p.high for p in points):
        sentences.append(
            _(
                "Lines show the median error over {heads} heads, and bands show the middle half of the errors. Random "
                "variants are measured with {seeds} seeds per head.",
                heads=question.heads,
                seeds=SEEDS,
            )
            if question.heads > 1
            else _(
                "For random variants, lines show the median error over {n} seeds, and bands show the middle half of "
                "the errors.",
                n=SEEDS,
            )
        )
    if question.options.against == "cost" and question.options.price == "count":
        sentences.append(describe_counts())
    exact = dict.fromkeys(sentence_name(ac.from_word(p.word)) for p in points if p.middle == 0 and p.variant != UNIFORM)
    if question.options.log and exact:
        sentences.append(
            _("These variants have an error of 0, which a log scale cannot show: {names}.", names=enumeration(exact))
        )
    if infinite_count := sum(not math.isfinite(p.middle) for group in groups.values() for p in group):
        sentences.append(
            _n(
                "{n} point is not drawn because its error is infinite. The variant gives weight to keys to which the "
                "reference gives none, or it has rows without any weight.",
                "{n} points are not drawn because their errors are infinite. The variants give weight to keys to "
                "which the reference gives none, or they have rows without any weight.",
                n=infinite_count,
            )
        )
    return sentences


def reading_guide(question: Question, points: Sequence[ErrorPoint], view_notes: Sequence[str]) -> str:
    """Return ``view_notes``, the other notes, and the definitions of the terms, as Markdown."""
    definitions = _(
        "$A$ is the variant's matrix of attention weights, and $V$ is the matrix of values. $S$ is the reference: "
        "softmax's matrix for the same queries and keys, or the variant's own reference if it has one.\n\n"
        "- **Matrix error**: $\\lVert A - S\\rVert_F / \\lVert S\\rVert_F$, where $\\lVert\\cdot\\rVert_F$ is the "
        "root of the sum of squares.\n"
        "- **Misplaced weight**: $\\tfrac12\\sum_j |A_{ij} - S_{ij}|$, averaged over the rows $i$.\n"
        "- **KL divergence**: $\\sum_j A_{ij} \\log (A_{ij}/S_{ij})$, averaged over the rows $i$. First, the "
        "absolute values of each row are divided by their sum.\n"
        "- **Missed top keys**: the share of the 10 heaviest keys in a row of $S$ that are not among the 10 heaviest "
        "keys in the same row of $A$.\n"
        "- **Output error**: $\\lVert AV - SV\\rVert_F / \\lVert SV\\rVert_F$. It is 100% if the output is 0, and "
        "200% if the output is the opposite of the reference's.\n"
        "- **Direction error**: one minus the mean cosine between the same rows of $AV$ and $SV$.\n\n"
        "**Equal weights** on all allowed keys are a baseline. Their output is the mean of these keys' values.\n\n"
        "If the input has **special tokens** such as [CLS] and [SEP], they are included.\n\n"
        "The **lower bounds** apply to the matrix error only. No matrix of rank $m$ is closer to $S$ than the "
        "truncated SVD of $S$ (Eckart and Young). No matrix with $k$ non-zeros per row is closer to $S$ than the $k$ "
        "largest entries of each row of $S$."
    )
    return "\n\n".join(["\n".join(f"- {note}" for note in (*view_notes, *notes(question, points))), definitions])
