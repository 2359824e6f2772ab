"""The sentences of the Learn page, each made from measured numbers."""

from collections import Counter
from collections.abc import Sequence

import attention_core as ac
from app.words.i18n import N_, _, _n, clauses, enumeration, escape_markdown, paragraph
from app.words.labels import label
from attention_core.experiments.learning import LearnRow
from attention_core.formatting import percent
from attention_core.learning.defaults import LONGER, MORE
from attention_core.learning.hidden_answers import hidden_share
from attention_core.learning.learning_task import LearningTask
from attention_core.learning.model import ModelSpec
from pages.learn.options import most_variants
from pages.learn.outcomes import LEARNED, Outcome, PartOutcome

CLOSE = 0.05
"""Largest difference of two accuracies that counts as none."""
WITH_FEATURES = 150
"""Steps within which gated linear attention learns recall if its queries and keys pass through elu + 1."""
PART_NAMES = {
    "convolution": N_("the short convolution"),
    "gate": N_("the gate"),
    "positions": N_("the positions"),
    "layer": N_("the last layer"),
}
"""Names of the parts that can be removed from a model, within a sentence."""
LACKING = {
    "convolution": N_("a short convolution"),
    "gate": N_("a gate"),
    "positions": N_("a position encoding"),
    "layer": N_("a second layer"),
}
"""Names of the parts that a model does not have, within a sentence."""


def trained_tensors(models: Sequence[ModelSpec]) -> str:
    """Return what is trained in addition to queries, keys and values, and in which variants."""
    names: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        for each in model.trainable:
            name = escape_markdown(label(ac.registry.from_word(model.word)))
            if name not in (own := names.setdefault(each.title, [])):
                own.append(name)
    if not names:
        return _("Queries, keys and values are trained. All settings of the variants stay as chosen.")
    return _(
        "Queries, keys and values are trained, and so are {tensors}. All other settings stay as chosen.",
        tensors=enumeration(
            _("{title} ({names})", title=_(title), names=enumeration(own)) for title, own in names.items()
        ),
    )


def headline(found: Sequence[Outcome]) -> str:
    """Return how many variants learned the task, after how many steps, and how far the others came, on two lines.

    Args:
        found: the variants; at least one.
    """
    return "  \n".join(filter(None, [_alone(found[0])] if len(found) == 1 else _together(found)))


def notes(found: Sequence[Outcome]) -> str:
    """Return what masks hide, why a variant learns slowly, and which variants remember more than in training."""
    return paragraph(hidden(found), *map(explanation, found), remembering(found))


def threshold(chance: float) -> str:
    """Return from which accuracy on a variant has learned the task, and the accuracy of guessing."""
    return _(
        "A variant has learned the task if at least {most} of its answers are correct. Guessing is correct in "
        "{share} of the cases.",
        most=percent(LEARNED),
        share=percent(chance),
    )


def _alone(outcome: Outcome) -> str:
    """Return whether the only variant learned the task."""
    values = {
        "name": f"**{escape_markdown(outcome.name)}**",
        "steps": outcome.rows[0].spec.steps,
        "share": percent(outcome.accuracy),
    }
    if outcome.step == 0:
        return _("Not trained yet: {names}.", names=values["name"])
    if (reached := outcome.learned) is not None:
        return _("{name} learns the task after {reached} of {steps} steps.", reached=reached[0], **values)
    if outcome.is_trained:
        return _("{name} does not learn the task within {steps} steps: {share} of its answers are correct.", **values)
    return _("{name} has not learned the task so far: {share} of its answers are correct.", **values)


def _together(found: Sequence[Outcome]) -> tuple[str, str]:
    """Return how many of several variants learned the task, with their results, and the results of the others."""
    learned, others, untrained = [], [], []
    for outcome in found:
        name, share = f"**{escape_markdown(outcome.name)}**", percent(outcome.accuracy)
        if outcome.step == 0:
            untrained.append(name)
        elif (reached := outcome.learned) is not None:
            result = _("step {steps}", steps=reached[0])
            learned.append((reached[0], _("{name} ({result})", name=name, result=result)))
        else:
            others.append((-outcome.accuracy, _("{name} ({result})", name=name, result=share)))
    return (
        _count(len(learned), found, names=enumeration(text for _steps, text in sorted(learned))),
        paragraph(
            _(
                N_("Fewer answers are correct with {names}.") if learned else N_("Correct answers: {names}."),
                names=enumeration(text for _share, text in sorted(others)),
            )
            if others
            else "",
            _("Not trained yet: {names}.", names=enumeration(untrained)) if untrained else "",
        ),
    )


def fastest(found: Sequence[Outcome]) -> str:
    """Return with how many seeds each variant learned first; empty if all seeds agree or some training is not over."""
    learned = [outcome for outcome in found if outcome.learned]
    if not all(outcome.is_trained for outcome in found) or len({len(each.learned_by_seed) for each in learned}) != 1:
        return ""
    first = []
    for steps in zip(*(outcome.learned_by_seed for outcome in learned), strict=True):
        least = min((own[0] for own in steps if own), default=0)
        first.append({outcome.name for outcome, own in zip(learned, steps, strict=True) if own and own[0] == least})
    if len(learned) == 1 or all(names == first[0] for names in first):
        return ""
    counts = Counter(name for outcome in learned for names in first for name in names & {outcome.name})
    return _(
        "The fastest variant depends on the seed, which sets the initial weights and the data: {names}.",
        names=enumeration(
            _("{name} ({count} of {n} seeds)", name=f"**{escape_markdown(name)}**", count=count, n=len(first))
            for name, count in counts.most_common()
        ),
    )


def remembering(found: Sequence[Outcome]) -> str:
    """Return which of the variants that learned the task still solve it with the largest tested number of items."""
    ends = {outcome.name: end for outcome in found if outcome.learned and (end := at_end(outcome, "items"))}
    own = found[0].rows[0].spec.items
    if not ends or len({items for items, _share in ends.values()}) > 1:
        return ""
    items = next(items for items, _share in ends.values())
    names = [f"**{escape_markdown(name)}**" for name, (_items, share) in ends.items() if share >= LEARNED]
    values = {"n": items, "own": own, "most": percent(LEARNED), "names": enumeration(names)}
    if items <= own:
        return ""
    if not names:
        text = N_(
            "With {n} items to remember instead of {own}, no model that learned the task answers at least "
            "{most} correctly."
        )
    elif len(names) < len(ends):
        text = N_(
            "With {n} items to remember instead of {own}, only the models with {names} answer at least {most} "
            "correctly."
        )
    else:
        text = N_(
            "With {n} items to remember instead of {own}, the models with {names} answer at least {most} correctly."
        )
    return _(text, **values)


def explanation(outcome: Outcome) -> str:
    """Return what keeps gated linear attention from learning recall quickly; empty for any other result.

    A test trains the model with this change. It learns the task within ``WITH_FEATURES`` steps.
    """
    spec = outcome.rows[0].spec
    if spec.model != ModelSpec(task="recall", word="gla") or not outcome.is_trained or outcome.learned is not None:
        return ""
    return _(
        "**{name}** lacks a feature map. In earlier runs with the default settings, it learned the task within {steps} "
        "steps with that of Linear (elu + 1), which makes all attention weights positive.",
        name=escape_markdown(outcome.name),
        steps=WITH_FEATURES,
    )


def _count(learned: int, found: Sequence[Outcome], *, names: str) -> str:
    """Return how many of at least two variants learned the task, and which."""
    steps, n = found[0].rows[0].spec.steps, len(found)
    if all(outcome.is_trained for outcome in found):
        if not learned:
            none = (
                N_("Neither variant learns the task within {steps} steps.")
                if n == 2
                else N_("Not one of the {n} variants learns the task within {steps} steps.")
            )
            return _(none, n=n, steps=steps)
        if learned == n:
            every = (
                N_("Both variants learn the task within {steps} steps: {names}.")
                if n == 2
                else N_("All {n} variants learn the task within {steps} steps: {names}.")
            )
            return _(every, n=n, steps=steps, names=names)
        return _n(
            "{n} of {count} variants learns the task within {steps} steps: {names}.",
            "{n} of {count} variants learn the task within {steps} steps: {names}.",
            n=learned,
            count=n,
            steps=steps,
            names=names,
        )
    if not learned:
        none = (
            N_("Neither variant has learned the task so far.")
            if n == 2
            else N_("Not one of the {n} variants has learned the task so far.")
        )
        return _(none, n=n)
    if learned == n:
        every = (
            N_("Both variants have learned the task so far: {names}.")
            if n == 2
            else N_("All {n} variants have learned the task so far: {names}.")
        )
        return _(every, n=n, names=names)
    return _n(
        "{n} of {count} variants has learned the task so far: {names}.",
        "{n} of {count} variants have learned the task so far: {names}.",
        n=learned,
        count=n,
        names=names,
    )


def hidden(found: Sequence[Outcome], length: int | None = None) -> str:
    """Return how often a variant's mask hides the answer from the token that asks for it; empty if it never does.

    Args:
        found: the variants.
        length: tokens of a sequence; those of training for None.
    """
    shares = [(escape_markdown(each.name), hidden_share(each.rows[0].spec, length)) for each in found]
    return paragraph(
        *(
            _(
                "At {n} tokens, the mask of {name} hides the answer from the asking token in {share} of the questions.",
                name=name,
                share=percent(share),
                n=length or found[0].rows[0].spec.length,
            )
            for name, share in shares
            if share
        )
    )


def medians(seeds: int, *, bands: bool, dashes: bool) -> str:
    """Return the number of seeds that the lines of a chart show, and how to tell the lines apart.

    Args:
        seeds: number of seeds.
        bands: whether the chart can show the quartiles of several seeds.
        dashes: whether the lines of some variants have a dash pattern.
    """
    return paragraph(
        _n("The lines show {n} seed.", "The lines are medians over {n} seeds.", n=seeds),
        _("Point at a line to see its quartiles as a band.") if bands and seeds > 1 else "",
        _("Colours and dash patterns only distinguish the variants.") if dashes else "",
    )


def diverged(found: Sequence[Outcome]) -> str:
    """Return which variants have a loss that is not finite; empty if all losses are finite."""
    names = [escape_markdown(outcome.name) for outcome in found if outcome.diverged]
    if not names:
        return ""
    return _("The loss of {names} is no longer finite, so training has failed.", names=enumeration(names))


def not_recorded(chosen: Sequence[ac.Attention], rows: Sequence[LearnRow]) -> str:
    """Return which of the chosen variants have no recorded run with these settings; empty if all have one."""
    known = {each.row.variant for each in rows}
    names = [escape_markdown(label(attention)) for attention in chosen if attention.word not in known]
    if not names:
        return ""
    return _(
        "Not recorded with these settings: {names}. Press “Train on this machine” to train them.",
        names=enumeration(names),
    )


def not_recorded_at_all() -> str:
    """Return what to do if no run of these settings is recorded."""
    return _("These settings are not recorded. Press “Train on this machine”.")


def too_many(chosen: Sequence[ac.Attention], seeds: int, models: int) -> str:
    """Return which of the chosen variants a press of the button would leave out; empty if it trains all.

    Args:
        chosen: the variants that can be trained.
        seeds: number of seeds.
        models: models that are trained for each variant.
    """
    names = [escape_markdown(label(attention)) for attention in chosen[most_variants(models) :]]
    if not names:
        return ""
    return _n(
        "Not trained here with {n} seed: {names}. Choose fewer variants.",
        "Not trained here with {n} seeds: {names}. Choose fewer variants or fewer seeds.",
        n=seeds,
        names=enumeration(names),
    )


def parts(found: Sequence[PartOutcome]) -> str:
    """Return the part whose removal lowers each variant's accuracy most, and by how much.

    Args:
        found: the variants; those without a removed part are left out.
    """
    losses, steady = [], []
    for outcome in found:
        if not outcome.without:
            continue
        part, accuracy = min(outcome.without.items(), key=lambda each: each[1])
        name = f"**{escape_markdown(outcome.whole.name)}**"
        if (loss := outcome.whole.accuracy - accuracy) > CLOSE:
            text = _(
                "{name} without {part}, {low} instead of {high}",
                name=name,
                part=_(PART_NAMES[part]),
                low=percent(accuracy),
                high=percent(outcome.whole.accuracy),
            )
            losses.append((-loss, text))
        else:
            steady.append(name)
    return paragraph(
        _(
            "Largest loss of accuracy by removing one part: {losses}.",
            losses=clauses(text for _loss, text in sorted(losses)),
        )
        if losses
        else "",
        _(
            "No removed part lowers the accuracy by more than {most} percentage points: {names}.",
            most=round(100 * CLOSE),
            names=enumeration(steady),
        )
        if steady
        else "",
    )


def not_removable(found: Sequence[PartOutcome]) -> str:
    """Return which of the parts a variant's model does not have; empty if all models have all parts."""
    lacking = {
        part: [escape_markdown(outcome.whole.name) for outcome in found if part not in outcome.has]
        for part in PART_NAMES
    }
    sentences = []
    for part, names in lacking.items():
        if names and len(names) == len(found):
            sentences.append(_("No model here has {part}.", part=_(LACKING[part])))
        elif names:
            sentences.append(_("Models without {part}: {names}.", part=_(LACKING[part]), names=enumeration(names)))
    return paragraph(_("Variants differ in the parts that can be removed."), *sentences) if sentences else ""


def not_trained_without(found: Sequence[PartOutcome]) -> str:
    """Return which variants are not trained yet without a part that they have; empty if all are."""
    names = [escape_markdown(outcome.whole.name) for outcome in found if set(outcome.has) - set(outcome.removed)]
    if not names:
        return ""
    return _(
        "Not trained without each part yet: {names}. Press “Train on this machine” to train them.",
        names=enumeration(names),
    )


def no_tests(task: LearningTask, *, by: str) -> str:
    """Return why the trained models of a task are not tested; empty if they are."""
    if task.key in (LONGER if by == "length" else MORE):
        return ""
    if by == "length":
        return _("Models of the task “{task}” are not tested on longer sequences.", task=_(task.title))
    return _("Models of the task “{task}” are not tested with more to remember.", task=_(task.title))


def tests_missing(found: Sequence[Outcome]) -> str:
    """Return why no test of the trained models is shown."""
    if all(outcome.is_trained for outcome in found):
        return _("No tests are recorded for these variants and settings. Press “Train on this machine”.")
    return _("The trained models are tested when training is complete.")


def jump_text(found: Sequence[Outcome]) -> str:
    """Return between which steps each variant's accuracy rises most; empty if none rises."""
    rises = [
        _("{name}: {low} to {high}", name=f"**{escape_markdown(outcome.name)}**", low=jump[0], high=jump[1])
        for outcome in found
        if (jump := outcome.jump) is not None
    ]
    if not rises:
        return ""
    return _(
        "Accuracy rises most between these training steps, marked ▲ below the slider: {names}.",
        names=enumeration(rises),
    )


def tested(found: Sequence[Outcome], *, by: str, trained_at: int) -> str:
    """Return each variant's accuracy at the largest tested length or number of items, next to that of training.

    Args:
        found: the variants; those without tests are left out.
        by: ``"length"`` or ``"items"``.
        trained_at: length or number of items of training.
    """
    ends = {outcome.name: end for outcome in found if (end := at_end(outcome, by)) is not None}
    if not ends:
        return ""
    largest = max(x for x, _share in ends.values())
    names = enumeration(
        f"**{escape_markdown(name)}** {percent(share)}"
        for name, (x, share) in sorted(ends.items(), key=lambda each: -each[1][1])
        if x == largest
    )
    if by == "length":
        return _(
            "The models were trained on sequences of {own} tokens. Accuracy at {n} tokens: {names}.",
            own=trained_at,
            n=largest,
            names=names,
        )
    return _(
        "The models were trained with {own} items to remember. Accuracy with {n} items: {names}.",
        own=trained_at,
        n=largest,
        names=names,
    )


def at_end(outcome: Outcome, by: str) -> tuple[int, float] | None:
    """Return the largest tested length or number of items and the median accuracy there; None without tests."""
    points = points_of(outcome, by)
    if not points:
        return None
    largest = max(x for x, _share in points)
    shares = sorted(share for x, share in points if x == largest)
    return largest, shares[len(shares) // 2]


def points_of(outcome: Outcome, by: str) -> list[tuple[int, float]]:
    """Return the accuracies of a variant's trained models by length, or by number of items at the training items.

    Args:
        outcome: the variant.
        by: ``"length"``: tests with as many items as in training; ``"items"``: tests with other numbers of items.
    """
    own = outcome.rows[0].spec
    if by == "length":
        return [(each.row.length, each.row.accuracy) for each in outcome.tests if each.row.items == own.items]
    same = [each for each in outcome.tests if each.row.items != own.items or each.row.length == own.length]
    return [(each.row.items, each.row.accuracy) for each in same]
