"""The sentences of the Learn page, each made from measured numbers."""

from collections import Counter
from collections.abc import Sequence

from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from attention_core.formatting import percent
from attention_core.learning.hidden_answers import accuracy_with_guesses, hidden_share
from attention_core.learning.model import ModelSpec
from attention_core.learning.train import TrainSpec
from pages.learn.outcomes import CLOSE, LEARNED, Outcome

WITH_FEATURES = 150
"""Steps within which gated linear attention learns recall if its queries and keys pass through elu + 1."""


def headline(found: Sequence[Outcome], more: str = "") -> str:
    """Return which variants learned the task, in bold, and on a second line how far the others came, and why.

    Args:
        found: the variants; at least one.
        more: address of the view of more to remember; empty for no link to it.
    """
    if len(found) == 1:
        finding, others = _alone(found[0]), paragraph(remembering(found, more), cause(found[0]))
    else:
        finding, others = _together(found, more)
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
        expected = with_guesses(outcome)
        return paragraph(
            _(
                "**{name}** gets {share} right, because its mask hides {hidden} of the answers.",
                hidden=percent(hidden),
                **values,
            ),
            _("Guessing the hidden answers and knowing the others would give {expected}.", expected=percent(expected))
            if expected is not None
            else "",
        )
    if spec.model == ModelSpec(task="recall", word="gla") and outcome.is_trained:
        return _("**{name}** gets {share} right: without a feature map, its weights can be negative.", **values)
    return ""


def with_guesses(outcome: Outcome) -> float | None:
    """Return the accuracy of guessing the answers that a variant's mask hides; None if the variant's is not close."""
    if outcome.step == 0 or outcome.learned is not None or not hidden_share(outcome.rows[0].spec):
        return None
    expected = accuracy_with_guesses(outcome.rows[0].spec)
    return expected if abs(outcome.accuracy - expected) <= CLOSE else None


def right_guesses(spec: TrainSpec) -> float:
    """Return the share of the hidden answers that are right if they are guessed; the mask hides at least one."""
    return 1 - (1 - accuracy_with_guesses(spec)) / hidden_share(spec)


def hidden_guesses(found: Sequence[Outcome], chance: float) -> str:
    """Return why guesses of hidden answers are right more often than other guesses; empty if no chart compares them.

    Args:
        found: the variants.
        chance: the accuracy of guessing all answers.
    """
    guessed = sorted(right_guesses(each.rows[0].spec) for each in found if with_guesses(each) is not None)
    shares = [share for share in dict.fromkeys(map(percent, guessed)) if share != percent(chance)]
    if not shares:
        return ""
    return _(
        "A guess of a hidden answer is one of the sequence's answers that the mask hides, so {shares} of these "
        "guesses are right instead of {chance}.",
        shares=enumeration(shares),
        chance=percent(chance),
    )


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
        _(
            "Before training, a model also guesses answers that the sequence does not contain, so its accuracy "
            "starts below guessing."
        )
        if from_sequence
        else "",
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


def _together(found: Sequence[Outcome], link: str) -> tuple[str, str]:
    """Return which of several variants learned the task, with their results, and the others with their causes."""
    surprise, named = _overtaken(found, link)
    learned, also, explained, others, untrained = [], [], [], [], []
    for outcome in found:
        name, share = f"**{escape_markdown(outcome.name)}**", percent(outcome.accuracy)
        if outcome.step == 0:
            untrained.append(name)
        elif (reached := outcome.learned) is not None:
            result = _("step {steps}", steps=reached[0])
            learned.append((reached[0], _("{name} ({result})", name=escape_markdown(outcome.name), result=result)))
            if outcome.name not in named:
                also.append((reached[0], _("{name} ({result})", name=name, result=result)))
        elif text := cause(outcome):
            explained.append((-outcome.accuracy, text))
        else:
            others.append((-outcome.accuracy, _("{name} ({result})", name=name, result=share)))
    more = remembering(found, link)
    if surprise:
        names = enumeration(text for _steps, text in sorted(also))
        own = found[0].rows[0].spec.items
        more = (
            _n("{names} also learns {own} pairs.", "{names} also learn {own} pairs.", n=len(also), names=names, own=own)
            if also
            else ""
        )
    return (
        surprise or _count(len(learned), found, names=enumeration(text for _steps, text in sorted(learned))),
        paragraph(
            more,
            *(text for _share, text in sorted(explained)),
            _(
                N_("Correct answers of the other variants: {names}.") if learned else N_("Correct answers: {names}."),
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
        "The seed sets the initial weights and the data. It also determines which variant learns the task in the "
        "fewest steps: {names}.",
        names=enumeration(
            _("{name} ({count} of {n} seeds)", name=f"**{escape_markdown(name)}**", count=count, n=len(first))
            for name, count in counts.most_common()
        ),
    )


def _with_more(found: Sequence[Outcome]) -> tuple[int, list[Outcome], list[Outcome]]:
    """Return the largest number of pairs that the variants that learned recall are tested with.

    Returns:
        The number, or 0 if it is not the same for all, or not above that of training; the tested variants; and those
        that still reach ``LEARNED``.
    """
    ends = [(outcome, *end) for outcome in found if outcome.learned and (end := outcome.at_end("items"))]
    numbers = {pairs for _outcome, pairs, _share in ends}
    most = max(numbers) if len(numbers) == 1 and max(numbers) > found[0].rows[0].spec.items else 0
    return most, [outcome for outcome, _, _ in ends], [outcome for outcome, _, share in ends if share >= LEARNED]


def _pairs(n: int, link: str) -> str:
    """Return a number of pairs to remember, as a link unless its address is empty."""
    text = _n("{n} pair", "{n} pairs", n=n)
    return f"[{text}]({link})" if link else text


def _overtaken(found: Sequence[Outcome], link: str) -> tuple[str, set[str]]:
    """Return that the variant that learned recall first fails with more pairs, unlike slower ones, and their names.

    The sentence is empty unless the first variant fails and another one does not.
    """
    pairs, tested, still = _with_more(found)
    steps = {outcome.name: outcome.learned[0] for outcome in tested if outcome.learned}
    fast = min(steps, key=lambda name: steps[name], default="")
    if not pairs or not still or min(steps[outcome.name] for outcome in still) <= steps[fast]:
        return "", set()
    text, named = (
        (
            N_(
                "{fast} learns to recall {own} pairs sooner than {names} (step {step} against {other}), but with "
                "{pairs} only {names} still reaches an accuracy of {most}."
            ),
            {fast, still[0].name},
        )
        if len(still) == 1
        else (
            N_(
                "{fast} learns to recall {own} pairs (step {step}) sooner than {names}, but with {pairs} only "
                "these slower variants still reach an accuracy of {most}."
            ),
            {fast},
        )
    )
    return _(
        text,
        fast=escape_markdown(fast),
        step=steps[fast],
        other=steps[still[0].name],
        own=found[0].rows[0].spec.items,
        pairs=_pairs(pairs, link),
        names=enumeration(escape_markdown(outcome.name) for outcome in still),
        most=percent(LEARNED),
    ), named


def remembering(found: Sequence[Outcome], link: str = "") -> str:
    """Return which of the variants that learned recall still solve it with the largest tested number of pairs."""
    pairs, tested, still = _with_more(found)
    if not pairs:
        return ""
    names = enumeration(f"**{escape_markdown(outcome.name)}**" for outcome in still)
    own = found[0].rows[0].spec.items
    values = {"pairs": _pairs(pairs, link), "own": own, "most": percent(LEARNED), "names": names}
    if not still:
        return _("With {pairs} instead of {own}, no variant still reaches an accuracy of {most}.", **values)
    if len(still) < len(tested):
        return _n(
            "With {pairs} instead of {own}, only {names} still reaches an accuracy of {most}.",
            "With {pairs} instead of {own}, only {names} still reach an accuracy of {most}.",
            n=len(still),
            **values,
        )
    return _n(
        "With {pairs} instead of {own}, {names} still reaches an accuracy of {most}.",
        "With {pairs} instead of {own}, {names} still reach an accuracy of {most}.",
        n=len(still),
        **values,
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


def medians(seeds: int) -> str:
    """Return the number of seeds that the lines of a chart show."""
    return _n(
        "The lines show {n} training run of each variant.",
        "The lines are medians over {n} training runs of each variant, with different seeds.",
        n=seeds,
    )


def reading(seeds: int, *, dashes: bool) -> str:
    """Return how to see the quartiles of several seeds, and that dash patterns only distinguish variants."""
    return paragraph(
        _("Point at a line to see the middle half of its runs (between the quartiles) as a band.") if seeds > 1 else "",
        _("Colours and dash patterns only distinguish the variants.") if dashes else "",
    )


def diverged(found: Sequence[Outcome]) -> str:
    """Return which variants have a loss that is not finite; empty if all losses are finite."""
    names = [escape_markdown(outcome.name) for outcome in found if outcome.diverged]
    if not names:
        return ""
    return _("The loss of {names} is no longer finite, so training has failed.", names=enumeration(names))
