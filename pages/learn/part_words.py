"""Sentences of the Learn page about models with one part removed, such as the gate or the short convolution."""

from collections.abc import Sequence

from app.words.finding import Finding
from app.words.i18n import N_, _, enumeration, escape_markdown, paragraph
from attention_core.formatting import percent
from pages.learn.outcomes import MAX_CLOSE, PartOutcome

PART_NAMES = {
    "convolution": N_("the short convolution"),
    "gate": N_("the gate"),
    "positions": N_("the positions"),
    "layer": N_("the last layer"),
}
"""Names of the parts that can be removed from a model, within a sentence."""
MISSING_PARTS = {
    "convolution": N_("a short convolution"),
    "gate": N_("a gate"),
    "positions": N_("a position encoding"),
    "layer": N_("a second layer"),
}
"""Names of the parts that a model does not have, within a sentence."""


def largest_losses(results: Sequence[PartOutcome]) -> Finding:
    """Return the sentences about the part whose removal lowers each variant's accuracy most, and by how much.

    The explanation lists the variants whose accuracy no removed part changes. If there are only such variants, this
    list is the finding.

    Args:
        results: the variants; those without a removed part are left out.
    """
    lost: dict[str, list[tuple[float, str]]] = {}
    unchanged = []
    for outcome in results:
        if not outcome.ablated_accuracy:
            continue
        part, accuracy = min(outcome.ablated_accuracy.items(), key=lambda each: each[1])
        if (loss := outcome.full.accuracy - accuracy) > MAX_CLOSE:
            text = _(
                "from {high} to {low} with {name}",
                name=escape_markdown(outcome.full.name_in_sentence),
                low=percent(accuracy),
                high=percent(outcome.full.accuracy),
            )
            lost.setdefault(part, []).append((-loss, text))
        else:
            unchanged.append(f"**{escape_markdown(outcome.full.name_in_sentence)}**")
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
            "With {names}, removing any one part lowers accuracy by at most {most} percentage points.",
            most=round(100 * MAX_CLOSE),
            names=enumeration(unchanged),
        )
        if unchanged
        else ""
    )
    return Finding(text, steady) if text else Finding(steady)


def not_removable(results: Sequence[PartOutcome]) -> str:
    """Return the sentences about parts that some models do not have; empty if all models have all parts."""
    lacking = {
        part: [escape_markdown(outcome.full.name_in_sentence) for outcome in results if part not in outcome.parts]
        for part in PART_NAMES
    }
    sentences = []
    for part, names in lacking.items():
        if names and len(names) == len(results):
            sentences.append(_("No model here has {part}.", part=_(MISSING_PARTS[part])))
        elif names:
            sentences.append(
                _("Models without {part}: {names}.", part=_(MISSING_PARTS[part]), names=enumeration(names))
            )
    return paragraph(_("Not every model has all the parts that can be removed here."), *sentences) if sentences else ""
