"""The sentences of the Learn page, each made from measured numbers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import attention_core as ac
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import label
from attention_core.formatting import percent
from attention_core.learning.hidden_answers import hidden_share
from attention_core.learning.model import ModelSpec
from attention_core.learning.rates import GRID, tuned_rate
from pages.learn.outcomes import CLOSE, LEARNED, Outcome

WITH_FEATURES = 150
"""Steps within which gated linear attention learns recall if its queries and keys pass through elu + 1."""


def trained_tensors(models: Sequence[ModelSpec]) -> str:
    """Return what is trained in addition to queries, keys and values, and in which variants."""
    names: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        for each in model.trainable:
            name = escape_markdown(label(ac.registry.from_word(model.word)))
            if name not in (own := names.setdefault(each.title, [])):
                own.append(name)
    if not names:
        return _("Queries, keys and values are trained. The settings of the variants are not trained.")
    return _(
        "Queries, keys and values are trained, and so are {tensors}. The other settings of the variants are not "
        "trained.",
        tensors=enumeration(
            _("{title} ({names})", title=_(title), names=enumeration(own)) for title, own in names.items()
        ),
    )


def learning_rates(found: Sequence[Outcome]) -> str:
    """Return the learning rate of each variant, and how it was chosen."""
    tuned: list[str] = []
    default: list[str] = []
    for outcome in found:
        model, rate = outcome.rows[0].spec.model, outcome.rows[0].spec.rate
        text = f"{escape_markdown(outcome.name)} {rate:g}"
        (default if tuned_rate(model) is None else tuned).append(text)
    return paragraph(
        _(
            "Learning rates, chosen for each variant from {grid} by the loss in runs with another seed: {rates}.",
            grid=enumeration(f"{rate:g}" for rate in GRID),
            rates=enumeration(tuned),
        )
        if tuned
        else "",
        _("Learning rates that were not tuned: {rates}.", rates=enumeration(default)) if default else "",
        _("Recorded runs and runs on this machine use the same rates."),
    )


def headline(found: Sequence[Outcome]) -> str:
    """Return how many variants learned the task, in bold, and on a second line how far the others came, and why.

    Args:
        found: the variants; at least one.
    """
    finding, others = (_alone(found[0]), cause(found[0])) if len(found) == 1 else _together(found)
    return "  \n".join(filter(None, [f"**{finding}**", others]))


def cause(outcome: Outcome) -> str:
    """Return why a variant that was trained did not learn the task, with its accuracy; empty if no cause is known.

    A test trains gated linear attention with a feature map, with which it learns recall within ``WITH_FEATURES`` steps.
    """
    if outcome.step == 0 or outcome.learned is not None:
        return ""
    spec = outcome.rows[0].spec
    values = {"name": escape_markdown(outcome.name), "share": percent(outcome.accuracy)}
    if hidden := hidden_share(spec):
        return _(
            "**{name}** ({share} correct) cannot attend to the answer in {hidden} of the questions, because its mask "
            "hides the answer.",
            hidden=percent(hidden),
            **values,
        )
    if spec.model == ModelSpec(task="recall", word="gla") and outcome.is_trained:
        return _(
            "**{name}** ({share} correct) lacks a feature map that makes all weights positive (Linear’s: elu + 1).",
            **values,
        )
    return ""


def with_features(found: Sequence[Outcome]) -> str:
    """Return how quickly gated linear attention learned with a feature map, if ``cause`` says that it lacks one."""
    if not any(outcome.rows[0].spec.model.word == "gla" and cause(outcome) for outcome in found):
        return ""
    return _("With the feature map elu + 1, Gated linear learned the task within {steps} steps.", steps=WITH_FEATURES)


def guess(chance: float, *, from_sequence: bool) -> str:
    """Return the label of the accuracy of guessing.

    Args:
        chance: the accuracy.
        from_sequence: whether a guess is one of the possible answers that the sequence contains.
    """
    text = N_("{share}: guessing an answer<br>from the sequence") if from_sequence else N_("{share}: guessing")
    return _(text, share=percent(chance))


def threshold(*, from_sequence: bool) -> str:
    """Return from which accuracy on a variant has learned the task, and why accuracy can start below guessing."""
    return paragraph(
        _("A variant has learned the task if at least {most} of its answers are correct.", most=percent(LEARNED)),
        _("Before training, a model also guesses answers that the sequence does not contain.") if from_sequence else "",
    )


def _alone(outcome: Outcome) -> str:
    """Return whether the only variant learned the task."""
    values = {
        "name": escape_markdown(outcome.name),
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
    """Return how many of several variants learned the task, with their results, and the others with their causes."""
    learned, explained, others, untrained = [], [], [], []
    for outcome in found:
        name, share = f"**{escape_markdown(outcome.name)}**", percent(outcome.accuracy)
        if outcome.step == 0:
            untrained.append(name)
        elif (reached := outcome.learned) is not None:
            result = _("step {steps}", steps=reached[0])
            learned.append((reached[0], _("{name} ({result})", name=escape_markdown(outcome.name), result=result)))
        elif text := cause(outcome):
            explained.append((-outcome.accuracy, text))
        else:
            others.append((-outcome.accuracy, _("{name} ({result})", name=name, result=share)))
    return (
        _count(len(learned), found, names=enumeration(text for _steps, text in sorted(learned))),
        paragraph(
            *(text for _share, text in sorted(explained)),
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
    ends = {outcome.name: end for outcome in found if outcome.learned and (end := outcome.at_end("items"))}
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


def hidden(found: Sequence[Outcome], length: int) -> str:
    """Return how often each variant's mask hides the answer from the token that asks for it; empty if no mask does.

    Args:
        found: the variants.
        length: tokens of a sequence.
    """
    shares = [(escape_markdown(each.name), hidden_share(each.rows[0].spec, length)) for each in found]
    names = [_("{name} ({result})", name=name, result=percent(share)) for name, share in shares if share]
    if not names:
        return ""
    return _(
        "At {n} tokens, a mask hides the answer from the asking token in some of the questions: {names}.",
        n=length,
        names=enumeration(names),
    )


def medians(seeds: int) -> str:
    """Return the number of seeds that the lines of a chart show."""
    return _n("The lines show {n} seed.", "The lines are medians over {n} seeds.", n=seeds)


def reading(seeds: int, *, dashes: bool) -> str:
    """Return how to see the quartiles of several seeds, and that dash patterns only distinguish variants."""
    return paragraph(
        _("Point at a line to see its quartiles as a band.") if seeds > 1 else "",
        _("Colours and dash patterns only distinguish the variants.") if dashes else "",
    )


def diverged(found: Sequence[Outcome]) -> str:
    """Return which variants have a loss that is not finite; empty if all losses are finite."""
    names = [escape_markdown(outcome.name) for outcome in found if outcome.diverged]
    if not names:
        return ""
    return _("The loss of {names} is no longer finite, so training has failed.", names=enumeration(names))


def jump_text(found: Sequence[Outcome]) -> str:
    """Return between which steps each variant's accuracy rises most; empty if none rises."""
    rises = [
        _("{name} ({low} to {high})", name=escape_markdown(outcome.name), low=jump[0], high=jump[1])
        for outcome in found
        if (jump := outcome.jump) is not None
    ]
    if not rises:
        return ""
    return _(
        "**Accuracy rises most between these training steps (▲ below the slider): {names}.**", names=enumeration(rises)
    )


def stripe(weights: Mapping[str, float]) -> str:
    """Return what the stripe in a matrix of the task induction is, and each variant's mean weight on it, by name."""
    names = enumeration(
        _("{name} ({result})", name=f"**{escape_markdown(name)}**", result=percent(weight))
        for name, weight in weights.items()
    )
    return paragraph(
        _(
            "In the stripe across the lower half, each repeated symbol attends to the symbol that followed it the "
            "first time (an induction head)."
        ),
        _("Mean weight on the stripe: {names}.", names=names),
        _("A negative weight (orange) subtracts the value.") if min(weights.values()) < 0 else "",
    )


def tested(found: Sequence[Outcome], *, by: str, trained_at: int) -> str:
    """Return each variant's accuracy at the largest tested length or number of items, next to that of training.

    Args:
        found: the variants; those without tests are left out.
        by: ``"length"`` or ``"items"``.
        trained_at: length or number of items of training.
    """
    ends = {outcome.name: end for outcome in found if (end := outcome.at_end(by)) is not None}
    if not ends:
        return ""
    largest = max(x for x, _share in ends.values())
    names = enumeration(
        _("{name} ({result})", name=escape_markdown(name), result=percent(share))
        for name, (x, share) in sorted(ends.items(), key=lambda each: -each[1][1])
        if x == largest
    )
    if by == "length":
        return _(
            "**Correct answers at {n} tokens: {names}.** The models were trained on sequences of {own} tokens.",
            own=trained_at,
            n=largest,
            names=names,
        )
    return _(
        "**Correct answers with {n} items to remember: {names}.** The models were trained with {own} items.",
        own=trained_at,
        n=largest,
        names=names,
    )


def with_and_without(found: Sequence[Outcome], others: Sequence[Outcome]) -> str:
    """Return how the accuracy at the largest tested length differs with rotary positions and without positions.

    Args:
        found: variants whose models have rotary positions, or no positions.
        others: the same variants with the other of the two; variants with other seeds or lengths are left out.
    """
    names, largest, changes = [], 0, []
    pairs = [(each, other) for each in found for other in others if each.word == other.word]
    for each, other in pairs:
        end, other_end = each.at_end("length"), other.at_end("length")
        if not end or not other_end or end[0] != other_end[0] or each.tested_seeds != other.tested_seeds:
            continue
        is_rotary, largest = each.rows[0].spec.model.positions == "rotary", end[0]
        rotary, plain = (end[1], other_end[1]) if is_rotary else (other_end[1], end[1])
        changes.append(abs(rotary - plain))
        names.append(
            _(
                "**{name}** ({rotary} with RoPE, {plain} without)",
                name=escape_markdown(each.name),
                rotary=percent(rotary),
                plain=percent(plain),
            )
        )
    if not names:
        return ""
    values = {"n": largest, "names": enumeration(names), "most": round(100 * CLOSE)}
    if max(changes) > CLOSE:
        return _(
            "Compare only models with the same positions, because rotary positions (RoPE) change the result at {n} "
            "tokens: {names}.",
            **values,
        )
    return _(
        "Rotary positions (RoPE) change the accuracy at {n} tokens by at most {most} percentage points: {names}.",
        **values,
    )


def memory(stored: Mapping[str, tuple[int, int]], length: int) -> str:
    """Return how many numbers a layer with each variant keeps for the next token.

    Args:
        stored: by the variant's name, the numbers at any length, and the numbers that each token adds.
        length: tokens at which memories that grow are compared.
    """
    grown: list[str] = []
    constant: list[str] = []
    for name, (fixed, more) in stored.items():
        text = _("**{name}** ({n:,} numbers)", name=escape_markdown(name), n=fixed + more * length)
        (grown if more else constant).append(text)
    return paragraph(
        _("Memory of a layer at {n} tokens, which grows with the length: {names}.", n=length, names=enumeration(grown))
        if grown
        else "",
        _("Memory of a layer at any length: {names}.", names=enumeration(constant)) if constant else "",
    )


def duration(seconds: Sequence[float | None]) -> str:
    """Return how long the training of some models takes.

    Args:
        seconds: CPU seconds of each model; None if they are not known.
    """
    known = [each for each in seconds if each is not None]
    values = {"seconds": math.ceil(sum(known)), "count": len(known)}
    if not known:
        return _n(
            "Trains {n} model. No run of this variant is recorded, so its training time is not known.",
            "Trains {n} models. No runs of these variants are recorded, so their training time is not known.",
            n=len(seconds),
        )
    if len(known) < len(seconds):
        text = N_("Trains {n} models. {count} of them train for about {seconds} CPU seconds, as in the recorded runs.")
        return _(text, n=len(seconds), **values)
    return _n(
        "Trains {n} model for about {seconds} CPU seconds, as in the recorded runs.",
        "Trains {n} models for about {seconds} CPU seconds in total, as in the recorded runs.",
        n=len(seconds),
        **values,
    )
