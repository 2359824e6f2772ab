"""The headline of the Learn page and notes on its results, each made from measured numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from app.words.finding import Finding
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core import registry
from attention_core.experiments.learning import length_with_items
from attention_core.formatting import percent
from attention_core.learning.defaults import default_plan
from attention_core.learning.hidden_answers import accuracy_with_guesses, hidden_share
from attention_core.learning.model import ModelSpec
from attention_core.learning.recorded_runs import recorded_rows
from attention_core.learning.tasks import task as task_of
from pages.learn.outcomes import MAX_CLOSE, THRESHOLD, Outcome, has_threshold, numbers_stored, outcomes

MAX_FEW_RUNS = 3
"""Runs of a variant up to which a band shows their range; for more runs, it shows their middle half."""

DELTA_RULE = ("deltanet", "gated_deltanet")
"""Words of the variants that correct the state with the delta rule."""
STRONG_DELTANET = "deltanet~strength~2.0"
"""DeltaNet with write strengths up to 2, as in links."""


def headline(results: Sequence[Outcome], link: str = "") -> Finding:
    """Return the sentence about which variants learned the task, and an explanation about the other variants.

    Args:
        results: the variants; at least one.
        link: address of the view “More pairs”; empty for no link to it.
    """
    if not has_threshold(results[0].rows[0].spec.model.task):
        finding, others = _ranking(results)
    elif len(results) == 1:
        finding, others = (_single_headline(results[0]), paragraph(capacity_note(results, link), cause(results[0])))
    else:
        finding, others = _comparison_headline(results, link)
    return Finding(f"**{finding}**", others)


def cause(outcome: Outcome) -> str:
    """Return the sentences about why a variant did not learn the task; empty if it did, or if no cause is known."""
    if outcome.step == 0 or outcome.learned_at is not None:
        return ""
    spec = outcome.rows[0].spec
    result = _(
        "**{name}** gets {share} right.",
        name=escape_markdown(outcome.name_in_sentence),
        share=percent(outcome.accuracy),
    )
    if hidden := hidden_share(spec):
        expected = guess_accuracy(outcome)
        is_passed_on = hidden_share(spec, layers=spec.model.layers) < hidden
        if expected is not None:
            return paragraph(
                result,
                _("Its mask shows {visible:.0%} of the answers.", visible=1 - hidden),
                _(
                    "A guess among the answers that it hides is right {chance:.0%} of the time, which would give "
                    "{expected:.0%} in total.",
                    chance=1 - (1 - expected) / hidden,
                    expected=expected,
                ),
                _("Its {n} layers hardly recover more.", n=spec.model.layers) if is_passed_on else "",
            )
        if is_passed_on and outcome.accuracy > accuracy_with_guesses(spec):
            return paragraph(
                _(
                    "**{name}** gets {share} right, although its mask hides {hidden} of the answers.",
                    name=escape_markdown(outcome.name_in_sentence),
                    share=percent(outcome.accuracy),
                    hidden=percent(hidden),
                ),
                _("Its {n} layers can pass hidden answers on through the tokens in between.", n=spec.model.layers),
            )
        return paragraph(result, _("Its mask hides {hidden} of the answers.", hidden=percent(hidden)))
    if spec.model == ModelSpec(task="recall", word="gla") and outcome.is_trained:
        return paragraph(
            result,
            _(
                "In other runs, it learned the task after one change: positive weights, or queries and keys scaled to "
                "length 1."
            ),
        )
    if spec.model == ModelSpec(task="parity", word="deltanet") and outcome.is_trained and _is_learned_when_strong():
        return paragraph(
            result, _("In other runs, it learned the task after one change: write strengths up to 2 instead of 1.")
        )
    return ""


def _is_learned_when_strong() -> bool:
    """Return whether the recorded models of DeltaNet with write strengths up to 2 have learned parity."""
    rows = [row for row in recorded_rows(default_plan("parity")) if row.row.variant == STRONG_DELTANET]
    return bool(rows) and outcomes(rows)[0].learned_at is not None


def guess_accuracy(outcome: Outcome) -> float | None:
    """Return the accuracy of a model that only guesses the answers that the variant's mask hides.

    Return None if the variant's measured accuracy differs by more than ``MAX_CLOSE``, or if guessing does not apply.
    """
    if outcome.step == 0 or outcome.learned_at is not None or not hidden_share(outcome.rows[0].spec):
        return None
    expected = accuracy_with_guesses(outcome.rows[0].spec)
    return expected if abs(outcome.accuracy - expected) <= MAX_CLOSE else None


def guess_label(chance: float, *, from_sequence: bool) -> str:
    """Return the label of the line at the accuracy of guessing.

    Args:
        chance: the accuracy of guessing.
        from_sequence: whether a guess is one of the possible answers that the sequence contains.
    """
    text = N_("{share}: guessing an answer<br>from the sequence") if from_sequence else N_("{share}: guessing")
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
    finding = _(
        "{best} gets the most answers right ({high}), and {worst} the fewest ({low}).",
        best=escape_markdown(in_words(ranked[0].name)),
        worst=names[-1],
        high=shares[0],
        low=shares[-1],
    )
    return finding, paragraph(other_results(list(zip(names, shares, strict=True))[1:-1]), waiting)


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


def _comparison_headline(results: Sequence[Outcome], link: str) -> tuple[str, str]:
    """Return the sentence about which of several variants learned the task, and a text about the other variants.

    The text is a list with one item for each known cause.
    """
    surprise = _fastest_fails(results, link)
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
        surprise or _count_sentence(len(learned), results, names=enumeration(map(escape_markdown, learned))),
        _lines(
            _test_of_surprise(results) if surprise else capacity_note(results, link),
            *(text for _share, text in sorted(explained)),
            other_results([(name, share) for _accuracy, name, share in sorted(others)], are_all=not learned),
            _("Not trained yet: {names}.", names=enumeration(untrained)) if untrained else "",
        ),
    )


def learned_steps(results: Sequence[Outcome]) -> list[str]:
    """Return the variants that learned the task, each with its number of steps, in the order of these numbers."""
    learned = sorted((reached[0], outcome.name_in_sentence) for outcome in results if (reached := outcome.learned_at))
    return [_("{name} ({result})", name=name, result=_("step {steps}", steps=steps)) for steps, name in learned]


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


def _solving_more(results: Sequence[Outcome]) -> tuple[int, list[Outcome], list[Outcome]]:
    """Return the results of the test with most pairs, for the variants that learned the task recall.

    Returns:
        The number of pairs in this test, or 0 if it differs between variants or is not larger than in training; the
        tested variants; and the tested variants whose accuracy reaches ``THRESHOLD``.
    """
    tests = [(outcome, *test) for outcome in results if outcome.learned_at and (test := outcome.largest_test("items"))]
    numbers = {pairs for _outcome, pairs, _share in tests}
    largest = max(numbers) if len(numbers) == 1 and max(numbers) > results[0].rows[0].spec.items else 0
    return (
        largest,
        [outcome for outcome, _, _ in tests],
        [outcome for outcome, _, share in tests if share >= THRESHOLD],
    )


def _pairs_link(n: int, link: str) -> str:
    """Return a number of pairs to remember, as a link unless its address is empty."""
    text = _n("{n} pair", "{n} pairs", n=n)
    return f"[{text}]({link})" if link else text


def _fastest_fails(results: Sequence[Outcome], link: str) -> str:
    """Return the sentences about a variant that learned recall sooner than others, but fails with more pairs.

    They are empty unless the first variant fails and another does not.
    """
    pairs, tested, solving = _solving_more(results)
    steps = {outcome.name_in_sentence: outcome.learned_at[0] for outcome in tested if outcome.learned_at}
    shares = {outcome.name_in_sentence: test[1] for outcome in tested if (test := outcome.largest_test("items"))}
    fast = min(steps, key=lambda name: steps[name], default="")
    if not pairs or not solving or min(steps[outcome.name_in_sentence] for outcome in solving) <= steps[fast]:
        return ""
    names = enumeration(escape_markdown(outcome.name_in_sentence) for outcome in solving)
    return paragraph(
        _(
            "With {own}, {fast} learns the task sooner than {names}.",
            fast=escape_markdown(fast),
            own=_pairs_link(results[0].rows[0].spec.items, ""),
            names=names,
        ),
        _n(
            "Tested with {pairs}, only {names} still gets at least {most} right; {fast} gets {share}.",
            "Tested with {pairs}, only {names} still get at least {most} right; {fast} gets {share}.",
            n=len(solving),
            pairs=_pairs_link(pairs, link),
            names=enumeration(
                _("{name} ({result})", name=escape_markdown(name), result=percent(shares[name]))
                for name in (outcome.name_in_sentence for outcome in solving)
            ),
            fast=escape_markdown(fast),
            share=percent(shares[fast]),
            most=percent(THRESHOLD),
        ),
    )


def _lines(*texts: str) -> str:
    """Return the texts that are not empty as a Markdown list; a single text is not in a list."""
    lines = list(filter(None, texts))
    return "\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines)


def _test_of_surprise(results: Sequence[Outcome]) -> str:
    """Return why only slower variants solve the test with most pairs.

    If the mask of the variant that learned recall first hides answers of the test, the reason is the share of these
    answers. Otherwise, the reason is left out unless this variant's state is one matrix, and the variants that solve
    the test store a cache that grows with the text.
    """
    pairs, tested, solving = _solving_more(results)
    fast = min(tested, key=lambda outcome: (outcome.learned_at or (0, 0.0))[0])
    spec = fast.rows[0].spec
    length = length_with_items(task_of(spec.model.task), spec.length, pairs)
    hidden = hidden_share(replace(spec, length=length, items=pairs))
    caches = {numbers_stored(outcome.rows[0].spec.model) for outcome in solving}
    is_matrix = registry.from_word(fast.word).variant in registry.matrix_states()
    has_reason = is_matrix and len(caches) == 1 and not any(constant for constant, _grown in caches)
    return paragraph(
        _(
            "With {pairs}, the mask of **{fast}** hides {share} of the answers.",
            pairs=_pairs_link(pairs, ""),
            fast=escape_markdown(fast.name_in_sentence),
            share=percent(hidden),
        )
        if hidden
        else _n(
            "With {pairs}, **{fast}** adds all of them up in one state, in which they interfere, whereas {names} "
            "stores each token separately.",
            "With {pairs}, **{fast}** adds all of them up in one state, in which they interfere, whereas {names} "
            "store each token separately.",
            n=len(solving),
            pairs=_pairs_link(pairs, ""),
            fast=escape_markdown(fast.name_in_sentence),
            names=enumeration(f"**{escape_markdown(outcome.name_in_sentence)}**" for outcome in solving),
        )
        if has_reason
        else "",
        _delta_note(fast, tested) if has_reason else "",
    )


def _delta_note(fast: Outcome, tested: Sequence[Outcome]) -> str:
    """Return the sentence that all variants with the delta rule learn later and recall less than linear attention.

    It is empty if this is not so, or if ``fast``, the variant that learned first, is not linear attention.
    """
    delta = [outcome for outcome in tested if outcome.word in DELTA_RULE]
    limit = (fast.largest_test("items") or (0, 0.0))[1] - MAX_CLOSE
    shares = [test[1] for outcome in delta if (test := outcome.largest_test("items"))]
    is_later = all(
        outcome.learned_at[0] > fast.learned_at[0] for outcome in delta if outcome.learned_at and fast.learned_at
    )
    if fast.word != "linear" or not delta or not is_later or max(shares) >= limit:
        return ""
    return _n(
        "{names} learns later and recalls fewer pairs here than Linear, although the delta rule is meant to reduce "
        "interference.",
        "{names} learn later and recall fewer pairs here than Linear, although the delta rule is meant to reduce "
        "interference.",
        n=len(delta),
        names=enumeration(f"**{escape_markdown(outcome.name_in_sentence)}**" for outcome in delta),
    )


def capacity_note(results: Sequence[Outcome], link: str = "") -> str:
    """Return the sentence about which variants that learned recall still solve it with the most pairs tested.

    Args:
        results: the variants.
        link: address of the view “More pairs”; empty for no link to it.
    """
    pairs, tested, solving = _solving_more(results)
    if not pairs:
        return ""
    names = enumeration(f"**{escape_markdown(outcome.name_in_sentence)}**" for outcome in solving)
    own_pairs = results[0].rows[0].spec.items
    values = {"pairs": _pairs_link(pairs, link), "own": own_pairs, "most": percent(THRESHOLD), "names": names}
    if not solving:
        return _(
            "With {pairs} to remember instead of {own}, no variant that learned the task reaches an accuracy of "
            "{most}.",
            **values,
        )
    if len(solving) < len(tested):
        return _n(
            "With {pairs} instead of {own}, only {names} still reaches an accuracy of {most}.",
            "With {pairs} instead of {own}, only {names} still reach an accuracy of {most}.",
            n=len(solving),
            **values,
        )
    return _n(
        "With {pairs} instead of {own}, {names} still reaches an accuracy of {most}.",
        "With {pairs} instead of {own}, {names} still reach an accuracy of {most}.",
        n=len(solving),
        **values,
    )


def _count_sentence(learned: int, results: Sequence[Outcome], *, names: str) -> str:
    """Return the sentence that ``learned`` of at least two variants learned the task, and which ones (``names``)."""
    steps, n = results[0].rows[0].spec.steps, len(results)
    if all(outcome.is_trained for outcome in results):
        if text := _nearly_learned(results):
            return text
        if not learned:
            none = (
                N_("Neither variant learns the task within {steps} steps.")
                if n == 2
                else N_("Not one of the {n} variants learns the task within {steps} steps.")
            )
            return _(none, n=n, steps=steps)
        if learned == n:
            every = (
                N_("Within {steps} steps, both variants learn the task: {names}.")
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
            N_("Both variants have already learned the task: {names}.")
            if n == 2
            else N_("All {n} variants have already learned the task: {names}.")
        )
        return _(every, n=n, names=names)
    return _n(
        "{n} of {count} variants has learned the task so far: {names}.",
        "{n} of {count} variants have learned the task so far: {names}.",
        n=learned,
        count=n,
        names=names,
    )


def _nearly_learned(results: Sequence[Outcome]) -> str:
    """Return the sentence that variants nearly learned the task.

    It is empty if a variant learned the task, or if the most accurate one is more than ``MAX_CLOSE`` below
    ``THRESHOLD``.
    """
    shares = [outcome.accuracy for outcome in results]
    most, high, low = percent(THRESHOLD), percent(max(shares)), percent(min(shares))
    has_reached = max(shares) >= THRESHOLD or any(outcome.learned_at for outcome in results)
    if has_reached or high == most or max(shares) < THRESHOLD - MAX_CLOSE:
        return ""
    if min(shares) < THRESHOLD - MAX_CLOSE:
        return _(
            "{name} comes closest to the {most} that count as learned: {high} of its answers are correct.",
            name=escape_markdown(in_words(max(results, key=lambda outcome: outcome.accuracy).name)),
            most=most,
            high=high,
        )
    text = (
        N_("Both variants get {shares} right, just below the {most} that count as learned.")
        if len(results) == 2
        else N_("All {n} variants get {shares} right, just below the {most} that count as learned.")
    )
    shares_text = high if high == low else _("{low} to {high}", low=low, high=high)
    return _(text, shares=shares_text, most=most, n=len(results))


def medians_note(seeds: int) -> str:
    """Return the sentence about the number of training runs (seeds) that each line of a chart shows."""
    return _n(
        "The lines show {n} training run of each variant.",
        "The lines are medians over {n} training runs of each variant, with different seeds.",
        n=seeds,
    )


def reading_note(seeds: int) -> str:
    """Return the note on the band around a line; empty for a single seed."""
    if seeds == 1:
        return ""
    if seeds <= MAX_FEW_RUNS:
        return _("Point at a line to see the range of its runs.")
    return _("Point at a line to see the middle half of its runs.")


def diverged_note(results: Sequence[Outcome]) -> str:
    """Return the sentence that lists the variants whose loss is not finite; empty if all losses are finite."""
    names = [escape_markdown(outcome.name_in_sentence) for outcome in results if outcome.diverged]
    if not names:
        return ""
    return _("The loss of {names} is no longer finite, so training has failed.", names=enumeration(names))
