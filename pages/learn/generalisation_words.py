"""Sentences of the Learn page about trained models on longer sequences and with more items to remember."""

from collections.abc import Mapping, Sequence

from app.words.finding import Finding
from app.words.i18n import N_, _, enumeration, escape_markdown, paragraph
from attention_core.formatting import percent
from attention_core.learning.hidden_answers import hidden_share
from pages.learn.outcomes import MAX_CLOSE, THRESHOLD, Outcome


def headline(results: Sequence[Outcome], *, by: str, trained_at: int) -> Finding:
    """Return the sentence that lists the variants with an accuracy of ``THRESHOLD`` in the hardest test.

    The hardest test has the largest length or number of key–value pairs. The explanation has the accuracies of the
    other variants. Both texts are empty if no variant was tested.

    Args:
        results: the variants; those without tests are left out.
        by: ``"length"``: tests on longer sequences; ``"items"``: tests with more key–value pairs.
        trained_at: the length or number of pairs in training.
    """
    tests = {outcome.name_in_sentence: test for outcome in results if (test := outcome.largest_test(by)) is not None}
    if not tests:
        return Finding("")
    largest = max(x for x, _share in tests.values())
    ranked = sorted((-share, name) for name, (x, share) in tests.items() if x == largest)

    def names(*, reach: bool) -> str:
        return enumeration(
            _("{name} ({result})", name=escape_markdown(name), result=percent(-share))
            for share, name in ranked
            if (-share >= THRESHOLD) is reach
        )

    learned, others = names(reach=True), names(reach=False)
    if by == "length":
        trained = _("The models were trained on sequences of {own} tokens.", own=trained_at)
        finding = (
            N_("At {n} tokens, at least {most} of the answers are correct with {names}.")
            if learned
            else N_("At {n} tokens, no variant reaches an accuracy of {most}. Accuracy by variant: {names}.")
        )
    else:
        trained = _("The models were trained on sequences with {own} key–value pairs.", own=trained_at)
        finding = (
            N_("With {n} key–value pairs to remember, at least {most} of the answers are correct with {names}.")
            if learned
            else N_(
                "With {n} key–value pairs to remember, no variant reaches an accuracy of {most}. Accuracy by "
                "variant: {names}."
            )
        )
    return Finding(
        "**" + _(finding, n=largest, most=percent(THRESHOLD), names=learned or others) + "**",
        paragraph(
            _("Correct answers of the other variants: {names}.", names=others) if learned and others else "", trained
        ),
    )


def hidden_answers(results: Sequence[Outcome], length: int) -> str:
    """Return the sentence about the share of answers that each variant's mask hides; empty if no mask hides any.

    An answer is hidden if the token that must predict it cannot attend to it.

    Args:
        results: the variants.
        length: number of tokens of a sequence.
    """
    shares = [(escape_markdown(each.name_in_sentence), hidden_share(each.rows[0].spec, length)) for each in results]
    names = [_("{name} ({result})", name=name, result=percent(share)) for name, share in shares if share]
    if not names:
        return ""
    return _(
        "At {n} tokens, a variant's mask can hide the answer from the token that must predict it. Share of answers "
        "that are hidden, by variant: {names}.",
        n=length,
        names=enumeration(names),
    )


def compare_positions(results: Sequence[Outcome], others: Sequence[Outcome]) -> str:
    """Return the sentence that compares models with rotary positions and without positions at the largest length.

    Args:
        results: variants whose models have rotary positions, or no positions.
        others: the same variants with the other position encoding. Variants whose tests have other seeds or lengths
            are left out.
    """
    names, largest, changes = [], 0, []
    pairs = [(each, other) for each in results for other in others if each.word == other.word]
    for each, other in pairs:
        own_test, other_test = each.largest_test("length"), other.largest_test("length")
        if not own_test or not other_test or own_test[0] != other_test[0] or each.tested_seeds != other.tested_seeds:
            continue
        is_rotary, largest = each.rows[0].spec.model.positions == "rotary", own_test[0]
        rotary, plain = (own_test[1], other_test[1]) if is_rotary else (other_test[1], own_test[1])
        changes.append(abs(rotary - plain))
        names.append(
            _(
                "**{name}** ({rotary} with RoPE, {plain} without)",
                name=escape_markdown(each.name_in_sentence),
                rotary=percent(rotary),
                plain=percent(plain),
            )
        )
    if not names:
        return ""
    values = {"n": largest, "names": enumeration(names), "most": round(100 * MAX_CLOSE)}
    if max(changes) > MAX_CLOSE:
        return _(
            "Compare only models with the same position encoding, because rotary positions (RoPE) change the "
            "accuracy at {n} tokens. Accuracy by variant: {names}.",
            **values,
        )
    return _(
        "Rotary positions (RoPE) change the accuracy of each compared variant at {n} tokens by at most {most} "
        "percentage points. Accuracy by variant: {names}.",
        **values,
    )


def memory_note(numbers_stored: Mapping[str, tuple[int, int]], length: int) -> str:
    """Return the sentences about how many numbers a layer stores for later tokens, by variant.

    Args:
        numbers_stored: by the variant's name, the numbers stored at any length, and the numbers added by each token.
        length: the number of tokens for which growing memories are reported.
    """
    growing: list[str] = []
    constant: list[str] = []
    for name, (fixed, per_token) in numbers_stored.items():
        text = _("{n:,} numbers with **{name}**", name=escape_markdown(name), n=fixed + per_token * length)
        (growing if per_token else constant).append(text)
    return paragraph(
        _(
            "At {n} tokens, a layer stores {stored}, and more for longer sequences.",
            n=length,
            stored=enumeration(growing),
        )
        if growing
        else "",
        _("At any length, a layer stores {stored}.", stored=enumeration(constant)) if constant else "",
    )
