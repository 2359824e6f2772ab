"""Sentences of the Learn page about models with one part removed, such as the gate or the short convolution."""

from collections.abc import Iterator, Sequence

from app.words.finding import Finding
from app.words.i18n import N_, _, _n, clauses, enumeration, escape_markdown, paragraph
from attention_core.experiments.learning import MEASURE_INTERVAL
from attention_core.formatting import percent
from pages.learn.outcomes import MAX_CLOSE, THRESHOLD, Outcome, PartOutcome

PART_NAMES = {
    "convolution": N_("the short convolution"),
    "gate": N_("the gate"),
    "positions": N_("the position encoding"),
    "layer": N_("the last layer"),
}
"""Names of the parts that can be removed from a model, within a sentence."""
MISSING_PARTS = {
    "convolution": N_("no short convolution"),
    "gate": N_("no gate"),
    "positions": N_("no position encoding"),
    "layer": N_("no second layer"),
}
"""Phrases for the parts that a model does not have, within a sentence."""


def largest_losses(results: Sequence[PartOutcome]) -> Finding:
    """Return the sentences about the part whose removal lowers each variant's accuracy most, and by how much.

    Variants without a removed part are left out. The explanation lists the variants whose accuracy no removed part
    changes, and other effects of removed parts. If there are only such variants, this list is the finding.
    """
    lost: dict[str, list[tuple[float, str]]] = {}
    unchanged, unneeded = [], set()
    for outcome in results:
        if not outcome.ablated_accuracy:
            continue
        part, accuracy = min(outcome.ablated_accuracy.items(), key=lambda each: each[1])
        if (loss := outcome.full.accuracy - accuracy) > MAX_CLOSE and outcome.full.is_above(outcome.ablations[part]):
            notes = clauses(_run_notes(outcome.ablations[part]))
            text = _(
                N_("to {share} for {name} ({notes})") if notes else N_("to {share} for {name}"),
                name=escape_markdown(outcome.full.name_in_sentence),
                share=percent(accuracy),
                notes=notes,
            )
            lost.setdefault(part, []).append((-loss, text))
        else:
            unchanged.append(f"**{escape_markdown(outcome.full.name_in_sentence)}**")
            unneeded |= set(outcome.ablated_accuracy)
    text = paragraph(
        *(
            _(
                "**Without {part}, accuracy falls {losses}.**",
                part=_(PART_NAMES[part]),
                losses=enumeration(text for _loss, text in sorted(lost[part])),
            )
            for part in sorted(lost, key=lambda part: min(lost[part]))
        )
    )
    steady = (
        _(
            "With {names}, removing {part} lowers accuracy by at most {most} percentage points.",
            most=round(100 * MAX_CLOSE),
            names=enumeration(unchanged),
            part=_(PART_NAMES[next(iter(unneeded))] if len(unneeded) == 1 else N_("any one part")),
        )
        if unchanged
        else ""
    )
    if not text:
        return Finding(steady, _other_effects(results))
    return Finding(paragraph(text, _layer_sentence(results)), paragraph(steady, _other_effects(results)))


def _run_notes(outcome: Outcome) -> Iterator[str]:
    """Yield the range of the accuracies of several runs, and the note that the accuracy still rises."""
    shares = [each.row.accuracy for each in outcome.rows if each.row.step == outcome.step]
    if len(shares) > 1:
        low, high = (percent(share) for share in (min(shares), max(shares)))
        yield _("runs: {low} to {high}", low=low, high=high)
    if outcome.is_rising:
        yield _("still rising at step {step}", step=outcome.step)


def _other_effects(results: Sequence[PartOutcome]) -> str:
    """Return the sentences about parts whose removal has a clear effect that the finding does not name.

    The effect is a loss of accuracy that is not the variant's largest loss, or another number of steps to learn the
    task. Steps are compared only if they differ by more than one measurement.
    """
    lower: dict[str, list[str]] = {}
    later: dict[str, list[str]] = {}
    for each in results:
        accuracies, learned = each.ablated_accuracy, each.full.learned_at
        worst = min(accuracies.values(), default=0.0)
        for part, ablated in each.ablations.items():
            name = f"**{escape_markdown(each.full.name_in_sentence)}**"
            if each.full.accuracy - ablated.accuracy > MAX_CLOSE and ablated.accuracy > worst:
                result = _("{name} ({result})", name=name, result=percent(ablated.accuracy))
                lower.setdefault(part, []).append(result)
            elif learned and ablated.learned_at and abs(ablated.learned_at[0] - learned[0]) > MEASURE_INTERVAL:
                steps = _("{name} ({steps} instead of {own})", name=name, steps=ablated.learned_at[0], own=learned[0])
                later.setdefault(part, []).append(steps)
    return paragraph(
        *(
            _(text, part=_(PART_NAMES[part]), names=enumeration(names))
            for text, effects in (
                (N_("Without {part}, fewer answers are right: {names}."), lower),
                (N_("Without {part}, another number of steps is needed: {names}."), later),
            )
            for part, names in effects.items()
        )
    )


def _layer_sentence(results: Sequence[PartOutcome]) -> str:
    """Return the sentence that one layer less is enough to reach ``THRESHOLD``.

    Empty unless it is for every variant.
    """
    tested = [each for each in results if "layer" in each.ablations]
    shares = [share for each in tested for share in (each.full.accuracy, each.ablated_accuracy["layer"])]
    if min(shares, default=0.0) < THRESHOLD:
        return ""
    return _n(
        "**A single layer is enough for {share}.**",
        "**{n} layers are enough for {share}.**",
        n=tested[0].full.rows[0].spec.model.layers - 1,
        share=percent(THRESHOLD),
    )


def convolution_note(results: Sequence[PartOutcome]) -> str:
    """Return what a short convolution is; empty if no model has one that can be removed."""
    if not any("convolution" in outcome.ablations for outcome in results):
        return ""
    return _("The short convolution mixes each query, key and value with those of the two preceding tokens.")
