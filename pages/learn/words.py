"""The headline of the Learn page and notes on its results, each made from measured numbers."""

from collections import Counter
from collections.abc import Sequence

from app.words.finding import Finding
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core.formatting import percent
from pages.learn.failure_words import cause, fastest_fails
from pages.learn.outcomes import THRESHOLD, Outcome, has_threshold

MAX_FEW_RUNS = 3
"""Runs of a variant up to which a band shows their range; for more runs, it shows their middle half."""


def headline(results: Sequence[Outcome]) -> Finding:
    """Return the sentence about which of at least one variant learned the task, and an explanation about the others."""
    if not has_threshold(results[0].rows[0].spec.model.task):
        finding, others = _ranking(results)
    elif len(results) == 1:
        finding, others = _single_headline(results[0]), cause(results[0])
    else:
        finding, others = _comparison_headline(results)
    return Finding(f"**{finding}**", others)


def guess_label(chance: float, *, from_sequence: bool) -> str:
    """Return the label of the line at the accuracy of guessing.

    Args:
        chance: the accuracy of guessing.
        from_sequence: whether a guess is one of the possible answers that the sequence contains.
    """
    text = N_("guessing an answer<br>from the sequence = {share}") if from_sequence else N_("guessing = {share}")
    return _(text, share=percent(chance))


def threshold_note(*, from_sequence: bool) -> str:
    """Return the note on the accuracy that counts as learned, and on an accuracy below that of guessing.

    Args:
        from_sequence: whether a guess is one of the possible answers that the sequence contains.
    """
    return paragraph(
        _("A variant has learned the task if at least {most} of its answers are correct.", most=percent(THRESHOLD)),
        _(
            "Before training, a model also predicts answers that the sequence does not contain. Its accuracy "
            "therefore starts below the accuracy of guessing an answer from the sequence."
        )
        if from_sequence
        else "",
    )


def _single_headline(outcome: Outcome) -> str:
    """Return the sentence about whether the only variant learned the task."""
    values = {
        "name": escape_markdown(in_words(outcome.name)),
        "steps": outcome.rows[0].spec.steps,
        "share": percent(outcome.accuracy),
    }
    if outcome.step == 0:
        return _("Not trained yet: {names}.", names=values["name"])
    if (reached := outcome.learned_at) is not None:
        return _("{name} learns the task after {reached} of {steps} steps.", reached=reached[0], **values)
    if outcome.is_trained:
        return _("{name} does not learn the task within {steps} steps: {share} of its answers are correct.", **values)
    return _("{name} has not learned the task so far: {share} of its answers are correct.", **values)


def _ranking(results: Sequence[Outcome]) -> tuple[str, str]:
    """Return the sentence about the most and the least accurate variant, and one about the other variants."""
    ranked = sorted((outcome for outcome in results if outcome.step), key=lambda outcome: -outcome.accuracy)
    names = [escape_markdown(outcome.name_in_sentence) for outcome in ranked]
    shares = [percent(outcome.accuracy) for outcome in ranked]
    untrained = enumeration(escape_markdown(outcome.name_in_sentence) for outcome in results if not outcome.step)
    waiting = _("Not trained yet: {names}.", names=untrained) if untrained else ""
    if not ranked:
        return waiting, ""
    if len(ranked) == 1:
        return _(
            "{name} gets {share} of the answers right.", name=escape_markdown(in_words(ranked[0].name)), share=shares[0]
        ), waiting
    if shares[0] == shares[-1]:
        listed = enumeration(names)
        return _(
            "{names} get {share} of the answers right.", names=listed[:1].upper() + listed[1:], share=shares[0]
        ), waiting
    first, last = shares.count(shares[0]), shares.count(shares[-1])
    best = enumeration(names[:first])
    finding = _n(
        "{best} gets the most answers right ({high}), and {worst} the fewest ({low}).",
        "{best} get the most answers right ({high}), and {worst} the fewest ({low}).",
        n=first,
        best=best[:1].upper() + best[1:],
        worst=enumeration(names[-last:]),
        high=shares[0],
        low=shares[-1],
    )
    return finding, paragraph(other_results(list(zip(names, shares, strict=True))[first:-last]), waiting)


def other_results(results: Sequence[tuple[str, str]], *, are_all: bool = False) -> str:
    """Return the sentence about the accuracy of variants that a headline does not name; empty without any.

    Args:
        results: the name and the accuracy of each of these variants.
        are_all: whether the headline names no variant.
    """
    if not results:
        return ""
    if len(results) == 1:
        [(name, share)] = results
        return _("**{name}** gets {share} right.", name=name[:1].upper() + name[1:], share=share)
    text = N_("Correct answers: {names}.") if are_all else N_("Correct answers of the other variants: {names}.")
    names = enumeration(_("{name} ({result})", name=f"**{name}**", result=share) for name, share in results)
    return _(text, names=names)


def _comparison_headline(results: Sequence[Outcome]) -> tuple[str, str]:
    """Return the sentence about which of several variants learned the task, and a text about the other variants.

    The text is a list with one item for each known cause.
    """
    learned, explained, others, untrained = (
        learned_steps(results),
        list[tuple[float, str]](),
        list[tuple[float, str, str]](),
        list[str](),
    )
    for outcome in results:
        name, share = escape_markdown(outcome.name_in_sentence), percent(outcome.accuracy)
        if outcome.step == 0:
            untrained.append(f"**{name}**")
        elif outcome.learned_at is not None:
            continue
        elif text := cause(outcome):
            explained.append((-outcome.accuracy, text))
        else:
            others.append((-outcome.accuracy, name, share))
    return (
        fastest_fails(results)
        or _count_sentence(len(learned), results, names=enumeration(map(escape_markdown, learned))),
        _lines(
            *(text for _share, text in sorted(explained)),
            other_results([(name, share) for _accuracy, name, share in sorted(others)], are_all=not learned),
            _("Not trained yet: {names}.", names=enumeration(untrained)) if untrained else "",
        ),
    )


def learned_steps(results: Sequence[Outcome]) -> list[str]:
    """Return the variants that learned the task, each with its number of steps, in the order of these numbers.

    If some of a variant's runs failed, their number is given too.
    """
    learned = [(reached[0], each.name_in_sentence, each) for each in results if (reached := each.learned_at)]
    texts = []
    for steps, name, outcome in sorted(learned, key=lambda each: each[:2]):
        runs, text = outcome.learned_at_by_seed, N_("step {steps}")
        if None in runs and outcome.is_trained:
            text = N_("step {steps}, in {count} of {n} runs")
        result = _(text, steps=steps, count=len(runs) - runs.count(None), n=len(runs))
        texts.append(_("{name} ({result})", name=name, result=result))
    return texts


def fastest_by_seed(results: Sequence[Outcome]) -> str:
    """Return the sentence about which variant learned first with how many seeds.

    It is empty if the same variant is first with all seeds, or if some training is not complete.
    """
    learned = [outcome for outcome in results if outcome.learned_at]
    if (
        not all(outcome.is_trained for outcome in results)
        or len({len(each.learned_at_by_seed) for each in learned}) != 1
    ):
        return ""
    first = []
    for steps in zip(*(outcome.learned_at_by_seed for outcome in learned), strict=True):
        fewest = min((result[0] for result in steps if result), default=0)
        first.append(
            {
                outcome.name_in_sentence
                for outcome, result in zip(learned, steps, strict=True)
                if result and result[0] == fewest
            }
        )
    if len(learned) == 1 or all(names == first[0] for names in first):
        return ""
    counts = Counter(name for outcome in learned for names in first for name in names & {outcome.name_in_sentence})
    return _(
        "The seed sets the initial weights and the data. The variant that learns the task in the fewest steps "
        "differs between seeds: {names}.",
        names=enumeration(
            _("{name} ({count} of {n} seeds)", name=f"**{escape_markdown(name)}**", count=count, n=len(first))
            for name, count in counts.most_common()
        ),
    )


def _lines(*texts: str) -> str:
    """Return the texts that are not empty as a Markdown list; a single text is not in a list."""
    lines = list(filter(None, texts))
    return "\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def _count_sentence(learned: int, results: Sequence[Outcome], *, names: str) -> str:
    """Return how many (``learned``) of the shown variants, at least two, learned the task, and their ``names``."""
    values = {"steps": results[0].rows[0].spec.steps, "count": len(results), "names": names}
    if not all(outcome.is_trained for outcome in results):
        if not learned:
            return _("No variant shown has learned the task so far.")
        if learned == len(results):
            return _("Every variant shown has already learned the task: {names}.", names=names)
        return _n(
            "{n} of {count} variants shown has learned the task so far: {names}.",
            "{n} of {count} variants shown have learned the task so far: {names}.",
            n=learned,
            **values,
        )
    if not learned:
        highest = percent(max(outcome.accuracy for outcome in results))
        return _(
            "No variant shown learns the task within {steps} steps: the highest accuracy is {highest}.",
            highest=highest,
            **values,
        )
    if learned == len(results):
        return _("Every variant shown learns the task within {steps} steps: {names}.", **values)
    return _n(
        "{n} of {count} variants shown learns the task within {steps} steps: {names}.",
        "{n} of {count} variants shown learn the task within {steps} steps: {names}.",
        n=learned,
        **values,
    )


def medians_note(seeds: int) -> str:
    """Return the sentence about the number of training runs (seeds) that each line of a chart shows."""
    return _n(
        "Each line is {n} training run.", "Each line is the median of {n} training runs with different seeds.", n=seeds
    )


def reading_note(seeds: int) -> str:
    """Return the note on the band around a line; empty for a single seed."""
    if seeds == 1:
        return ""
    if seeds <= MAX_FEW_RUNS:
        return _("Point at a line or tap it to see the range of its runs.")
    return _("Point at a line or tap it to see the middle half of its runs.")


def diverged_note(results: Sequence[Outcome]) -> str:
    """Return the sentence that lists the variants whose loss is not finite; empty if all losses are finite."""
    names = [escape_markdown(outcome.name_in_sentence) for outcome in results if outcome.diverged]
    if not names:
        return ""
    return _("The loss of {names} is no longer finite, so training has failed.", names=enumeration(names))
