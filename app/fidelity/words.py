"""The Error page in words: its measures, the sentence computed from what is found, and how to read the chart."""

import math
from collections.abc import Sequence

import attention_core as ac
from app.fidelity.lines import Asked, by_variant, cheaper_upwards, reference_name, replaces
from app.naming import label
from app.text import _
from app.visit import REFERENCE
from attention_core.experiments.error import SEEDS, UNIFORM
from attention_core.experiments.tradeoff import Point, best_within

SHARE = 0.5
"""Variants are compared at no more than this part of softmax's multiply-adds: a saving anyone would notice."""


def measures() -> dict[str, tuple[str, str]]:
    """Each measure's name in the menu and on the axis."""
    return {
        "matrix": (_("Matrix: relative error"), _("relative error of the matrix")),
        "mass": (_("Rows: misplaced mass"), _("misplaced mass per row")),
        "kl": (_("Rows: KL divergence"), _("KL divergence per row (nats)")),
        "missed": (_("Rows: missed top keys"), _("share of the 10 heaviest keys missed")),
        "output": (_("Output: relative error"), _("relative error of the output")),
        "turn": (_("Output: direction"), _("1 − cosine of the outputs")),
    }


def in_one_sentence(asked: Asked, found: Sequence[Point]) -> str:
    """Which variant is best at half of softmax's multiply-adds or less, at the greatest length, or that none is.

    Only what is held against one and the same reference is ranked: there is a sentence for each.
    """
    n = max((p.n for p in found), default=0)
    here = [p for p in found if p.n == n]
    rivals = [p for _attention, own in by_variant(asked, here) for p in own]
    if not rivals and any(a.word != REFERENCE for a in asked.attentions):
        return ""  # not yet
    if not rivals:
        return _("Add a variant, with a knob if you can, to see what it loses against softmax.")
    zeros = {p.reference: p.middle for p in here if p.variant == UNIFORM}
    most = SHARE * ac.get(REFERENCE).cost(n, asked.d, causal=asked.causal).multiply_adds
    references = dict.fromkeys(p.reference for p in sorted(rivals, key=lambda p: p.reference != REFERENCE))
    return " ".join(
        verdict(
            best_within([p for p in rivals if p.reference == reference], most),
            n=n,
            zero=zeros.get(reference, math.inf),
            measure=measures()[asked.measure][1],
            reference=reference_name(reference),
        )
        for reference in references
    )


def verdict(best: Point | None, *, n: int, zero: float, measure: str, reference: str) -> str:
    """The sentence about variants with one reference at half of softmax's price.

    Args:
        best: the one that errs least there, None if none is as cheap.
        n: tokens.
        zero: the error of the plain mean of the values.
        measure: what the errors are, in words.
        reference: what they are taken against, in words.
    """
    if best is None:
        return _(
            "At n = {n} nothing that is held against {reference} gets by with half of softmax's multiply-adds: here "
            "the cheap version is not cheap.",
            n=n,
            reference=reference,
        )
    told = {
        "name": label(ac.from_word(best.word)),
        "error": best.middle,
        "zero": zero,
        "n": n,
        "measure": measure,
        "reference": reference,
    }
    if best.middle >= zero:
        return _(
            "At half of softmax's multiply-adds, **nothing beats the plain mean of the values** beside {reference} at "
            "n = {n}: the best, {name}, has a {measure} of {error:.2g}, the mean {zero:.2g}.",
            **told,
        )
    return _(
        "At half of softmax's multiply-adds or less, **{name}** comes closest to {reference} at n = {n}, with a "
        "{measure} of {error:.2g}; the plain mean of the values has {zero:.2g}.",
        **told,
    )


def captions(asked: Asked, found: Sequence[Point], *, above: int) -> list[str]:
    """What a reader of this chart must know, each in a sentence.

    Args:
        asked: what the chart shows.
        found: its points.
        above: values that lie above the axis.
    """
    told = []
    shown = [attention for attention, _own in by_variant(asked, found)]
    if others := [_(a.title) for a in shown if replaces(a)]:
        told.append(
            _(
                "Open circles and dash-dotted lines replace softmax rather than approximate it ({names}): their "
                "distance is a difference, not a failure.",
                names=", ".join(others),
            )
        )
    for attention in shown:
        if attention.variant.reference is not None:
            told.append(_("{name}: {note}", name=_(attention.title), note=_(attention.variant.note)))
    if asked.against == "budget":
        if asked.measure == "matrix" and any(p.floor for p in found):
            told.append(
                _(
                    "Dashed: each variant's floor, judged from its matrix. Where that has zeros, the best choice of as "
                    "many keys in each row; where its rank is short, the truncated SVD of that rank; the higher one."
                )
            )
        budgets = [own for attention, own in by_variant(asked, found) if attention.variant.budget is not None]
        if any(map(cheaper_upwards, budgets)):
            told.append(_("↓: turning the knob up makes it cheaper."))
        if level := [_(a.title) for a in shown if a.variant.budget is None]:
            told.append(_("Level lines have no budget knob: {names}.", names=", ".join(level)))
    if asked.against == "cost":
        told.append(_("Grey steps and rings: the Pareto front, points that nothing cheaper matches against softmax."))
    if any(p.low < p.high for p in found):
        told.append(
            _(
                "Lines are medians and bands hold the middle half of {heads} heads and, where chance plays a part, of "
                "{seeds} seeds.",
                heads=asked.heads,
                seeds=SEEDS,
            )
            if asked.heads > 1
            else _("Where chance plays a part, lines are medians and bands hold the middle half of {n} seeds.", n=SEEDS)
        )
    if endless := sum(not math.isfinite(p.middle) for _attention, own in by_variant(asked, found) for p in own):
        told.append(
            _(
                "{n} points are infinite and not drawn: they weigh keys that the reference gives nothing, or have "
                "empty rows.",
                n=endless,
            )
        )
    if above:
        told.append(_("{n} points lie above the axis; a double click on the chart shows them.", n=above))
    return told


def definitions() -> str:
    """What the terms mean, as Markdown."""
    return _(
        "**Matrix** $\\lVert A - S\\rVert_F / \\lVert S\\rVert_F$. "
        "**Misplaced mass** $\\tfrac12\\sum_j |A_{ij} - S_{ij}|$, mean over rows. "
        "**KL** $\\sum_j A_{ij} \\log (A_{ij}/S_{ij})$, mean over rows, of absolute values made to sum to one. "
        "**Missed keys** share of the 10 heaviest keys in a row of $S$ that are not among the variant's 10. "
        "**Output** $\\lVert AV - SV\\rVert_F / \\lVert SV\\rVert_F$. "
        "**Direction** one minus the mean cosine between rows of $AV$ and $SV$.\n\n"
        "$S$ is softmax on the same queries, keys and values, or the variant's own reference where it has one. The "
        "**mean of v** is uniform attention over the visible keys: whoever errs more might as well not look at them. "
        "The **floors** hold for the matrix error alone: no matrix of rank $m$ is closer to $S$ than its truncated SVD "
        "(Eckart and Young), and none with as many non-zeros in each row than the one that keeps the row's largest "
        "entries. Which applies is read from the matrix, its numerical rank and its zeros, not from a name."
    )
