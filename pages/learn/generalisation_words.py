"""Sentences of the Learn page about trained models on longer sequences and with more items to remember."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.words.finding import Finding
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from attention_core.formatting import percent
from attention_core.learning.defaults import TEST_ITEMS
from attention_core.learning.hidden_answers import hidden_share
from attention_core.learning.learning_task import LearningTask
from attention_core.learning.tasks import task as task_of
from pages.learn.outcomes import MAX_CLOSE, THRESHOLD, Outcome
from pages.learn.words import other_results

MAX_NAMES = 3
"""Largest number of variants that a headline names."""
POSITION_TEXTS = {
    "none": N_("The models have no position encoding."),
    "learned": N_("The models have learned positions."),
    "rotary": N_("The models have rotary positions (RoPE)."),
}


def task_text(task: LearningTask, view: str, positions: str, *, convolution: bool) -> str:
    """Return what the models have to learn, how they were tested in this view, and whether they have a convolution."""
    title, note = _(task.title), ""
    if view == "capacity" and task.key in TEST_ITEMS:
        note = _(
            "The models were trained with {own} pairs, and tested with {own} to {most}.",
            own=task.items,
            most=max(TEST_ITEMS[task.key]),
        )
    elif task.key == "recall":
        title = _("{task}, {pairs}", task=title, pairs=_n("{n} pair", "{n} pairs", n=task.items))
    if view in ("race", "longer"):
        note = _(POSITION_TEXTS[positions])
    parts = _("All models have a short convolution.") if convolution and view != "parts" else ""
    return _("**{task}.** {summary}", task=title, summary=paragraph(_(task.summary), note, parts))


def headline(results: Sequence[Outcome], *, by: str, trained_at: int, counterparts: Sequence[Outcome] = ()) -> Finding:
    """Return the sentences about which variants keep their accuracy in the hardest test, and which lose some.

    The hardest test has the largest length or number of key–value pairs. The explanation has the accuracies of the
    variants that the headline does not name. Both texts are empty if no variant was tested.

    Args:
        results: the variants; those without tests are left out.
        by: ``"length"``: tests on longer sequences; ``"items"``: tests with more key–value pairs.
        trained_at: the length or number of pairs in training.
        counterparts: the same variants with the other position encoding: rotary positions, or no positions.
    """
    tests = [(outcome, test) for outcome in results if (test := outcome.largest_test(by)) is not None]
    if not tests:
        return Finding("")
    largest = max(x for _outcome, (x, _share) in tests)
    hardest = [(outcome, share) for outcome, (x, share) in tests if x == largest]
    ranked = sorted((-share, escape_markdown(outcome.name_in_sentence), outcome.accuracy) for outcome, share in hardest)
    able = [(-share, name) for share, name, _own in ranked if -share >= THRESHOLD]
    unable = [(-share, name) for share, name, _own in ranked if -share < THRESHOLD]
    values = {"own": trained_at, "n": largest}
    if not able:
        named = unable[:MAX_NAMES]
        finding = (
            N_("At {n} tokens, no variant reaches an accuracy of {most}. Accuracy by variant: {names}.")
            if by == "length"
            else N_("With {n} pairs, no variant reaches an accuracy of {most}. Accuracy by variant: {names}.")
        )
        listed = enumeration(_("{name} ({result})", name=name, result=percent(share)) for share, name in named)
        text = _(finding, **values, most=percent(THRESHOLD), names=listed)
    else:
        # Variants that did not learn the task are left out, because they have no accuracy to lose.
        learned = {escape_markdown(outcome.name_in_sentence) for outcome, _share in hardest if outcome.learned_at}
        is_by_learned = by == "items" and {name for _share, name in able} < learned
        losing = [
            (-share, name)
            for share, name, own in ranked
            if -share < THRESHOLD and own + share > MAX_CLOSE and name in learned
        ]
        named = losing[-(MAX_NAMES if is_by_learned else max(1, MAX_NAMES - len(able))) :]
        losses = [_("to {share} for {name}", share=percent(share), name=name) for share, name in named]
        runs = [
            [share for x, share in outcome.test_points(by) if x == largest]
            for outcome, share in hardest
            if share >= THRESHOLD
        ]
        text = paragraph(
            _learned_sentence([name for _share, name in able], len(learned), values)
            if is_by_learned
            else _able_sentence(able, len(ranked), runs, by, values),
            _("Accuracy falls {losses}.", losses=enumeration(losses)) if losses else "",
        )
    others = [(name, percent(share)) for share, name in unable if (share, name) not in named]
    return Finding(f"**{paragraph(text, _position_sentence(results, counterparts))}**", other_results(others))


def _learned_sentence(able: Sequence[str], learned: int, values: Mapping[str, int]) -> str:
    """Return the sentence about which of the variants that learned the task solve it with the most pairs.

    Args:
        able: the names of the variants that solve it.
        learned: number of the variants that learned the task, which is larger.
        values: the number of pairs: ``own`` in training, ``n`` in the test.
    """
    return _n(
        "{count} variants learn {own} pairs, but only {names} still gets at least {most} right with {pairs} pairs.",
        "{count} variants learn {own} pairs, but only {names} still get at least {most} right with {pairs} pairs.",
        n=len(able),
        count=learned,
        names=enumeration(able) if len(able) <= MAX_NAMES else len(able),
        most=percent(THRESHOLD),
        own=values["own"],
        pairs=values["n"],
    )


def _able_sentence(
    able: Sequence[tuple[float, str]], count: int, runs: Sequence[Sequence[float]], by: str, values: Mapping[str, int]
) -> str:
    """Return the sentence about the variants that reach ``THRESHOLD`` in the hardest test.

    The sentence says that its accuracies are medians if it is not true for every run.

    Args:
        able: the accuracies and names of these variants.
        count: number of all tested variants.
        runs: the accuracies of the runs of each variant in ``able``.
        by: the type of the tests, as in ``headline``.
        values: the length or number of pairs: ``own`` in training, ``n`` in the test.
    """
    names = enumeration(name for _share, name in able)
    if len(able) > MAX_NAMES:
        names = _("{able} of {count} variants", able=len(able), count=count)
    least = min(share for share, _name in able)
    stated = math.floor(100 * least + 1e-9)
    if any(100 * share + 1e-9 < stated for shares in runs for share in shares):
        names = _("{names} (median of {n} runs)", names=names, n=max(map(len, runs)))
    texts = {
        ("length", True): N_("After training on {own} tokens, all answers on {n} tokens are correct with {names}."),
        ("length", False): N_(
            "After training on {own} tokens, at least {least}% of the answers on {n} tokens are correct with {names}."
        ),
        ("items", True): N_("After training with {own} pairs, all answers with {n} pairs are correct with {names}."),
        ("items", False): N_(
            "After training with {own} pairs, at least {least}% of the answers with {n} pairs are correct with {names}."
        ),
    }
    return _(texts[by, least == 1], names=names, least=stated, **values)


def hidden_answers(results: Sequence[Outcome], length: int, items: int, *, by: str) -> str:
    """Return the sentences about the share of answers that each variant's mask hides; empty if no mask hides any.

    An answer is hidden if the token that must predict it cannot attend to it.

    Args:
        results: the variants.
        length: number of tokens of a sequence.
        items: number of items to remember.
        by: the type of the tests, as in ``headline``, whose accuracies are compared with guessing.
    """
    shares = [(each, hidden_share(replace(each.rows[0].spec, length=length, items=items))) for each in results]
    hiding = [(each, share) for each, share in shares if share]
    if not hiding:
        return ""
    names = (
        _("the mask of {name} hides {share}", share=percent(share), name=escape_markdown(each.name_in_sentence))
        for each, share in hiding
    )
    task = task_of(results[0].rows[0].spec.model.task)
    chance = task.chance(length, items)
    # In other tasks, such as selective copying, a guess is one of all classes.
    is_from_sequence = chance > 1 / task.classes
    accuracies = [test[1] for each, _share in hiding if (test := each.largest_test(by)) is not None]
    return paragraph(
        _(
            "At {n} tokens, {names} of the answers from the tokens that must predict them.",
            n=length,
            names=enumeration(names),
        ),
        _("A guess is one of the answers in the sequence, so a model that cannot see them can do worse than guessing.")
        if is_from_sequence and min(accuracies, default=1.0) < chance
        else "",
    )


def matching(results: Sequence[Outcome], counterparts: Sequence[Outcome]) -> list[tuple[Outcome, Outcome]]:
    """Return each variant with its counterpart, if the tests of both have the same seeds and the same largest length.

    The arguments are those of ``headline``.
    """
    return [
        (each, other)
        for each in results
        for other in counterparts
        if each.word == other.word
        and each.tested_seeds == other.tested_seeds
        and [x for x, _share in each.test_points("length")] == [x for x, _share in other.test_points("length")] != []
    ]


def _position_sentence(results: Sequence[Outcome], counterparts: Sequence[Outcome]) -> str:
    """Return the sentence about the variant whose accuracy at the largest length changes most with other positions.

    It is empty if no accuracy changes by more than ``MAX_CLOSE``, or if this variant reaches ``THRESHOLD`` with neither
    position encoding. The arguments are those of ``headline``.
    """
    shares = [
        (each, *test, other_test[1])
        for each, other in matching(results, counterparts)
        if (test := each.largest_test("length")) and (other_test := other.largest_test("length"))
    ]
    if not shares:
        return ""
    outcome, n, own, changed = max(shares, key=lambda share: abs(share[2] - share[3]))
    if abs(own - changed) <= MAX_CLOSE or max(own, changed) < THRESHOLD:
        return ""
    text = (
        N_("On {n} tokens, {name} gets {share} right without position encoding (dashed), instead of {own} with RoPE.")
        if outcome.rows[0].spec.model.positions == "rotary"
        else N_(
            "On {n} tokens, {name} gets {share} right with RoPE (dashed), instead of {own} without position encoding."
        )
    )
    return _(text, n=n, name=escape_markdown(outcome.name_in_sentence), share=percent(changed), own=percent(own))
