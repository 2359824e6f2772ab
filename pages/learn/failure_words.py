"""Sentences of the Learn page about why variants do not learn their task, or fail with more pairs than in training."""

from collections.abc import Sequence

from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core import registry
from attention_core.formatting import percent
from attention_core.learning.defaults import default_plan
from attention_core.learning.hidden_answers import accuracy_with_guesses, hidden_share
from attention_core.learning.model import ModelSpec
from attention_core.learning.recorded_runs import recorded_rows
from pages.learn.outcomes import MAX_CLOSE, THRESHOLD, Outcome, numbers_stored, outcomes

STRONG_DELTANET = "deltanet~strength~2.0"
"""DeltaNet with write strengths up to 2, as in links."""
DELTA_RULE = ("deltanet", "gated_deltanet")
"""Words of the variants that correct the state with the delta rule."""


def cause(outcome: Outcome) -> str:
    """Return the sentences about why a variant did not learn the task; empty if it did, or if no cause is known."""
    if outcome.step == 0 or outcome.learned_at is not None:
        return ""
    spec = outcome.rows[0].spec
    hidden = hidden_share(spec)
    if hidden:
        reason = paragraph(_("Its mask hides {hidden} of the answers.", hidden=percent(hidden)), _guesses(outcome))
    elif spec.model == ModelSpec(task="recall", word="gla") and outcome.is_trained:
        reason = _(
            "By default, its queries and keys can be negative and are not scaled. With positive queries and keys, or "
            "with both scaled to length 1, it reached {most} within 250 steps in other runs.",
            most=percent(THRESHOLD),
        )
    elif spec.model == ModelSpec(task="parity", word="deltanet") and outcome.is_trained and _is_learned_when_strong():
        reason = _("With write strengths up to 2 instead of 1, it learned the task in other runs.")
    else:
        return ""
    result = _(
        "**{name}** gets {share} right.",
        name=escape_markdown(outcome.name_in_sentence),
        share=percent(outcome.accuracy),
    )
    return paragraph(result, reason)


def _guesses(outcome: Outcome) -> str:
    """Return the sentences that compare the accuracy with guesses of the hidden answers; empty if no reason is known.

    With several layers, tokens in between can pass hidden answers on.
    """
    spec = outcome.rows[0].spec
    is_passed_on = hidden_share(spec, layers=spec.model.layers) < hidden_share(spec)
    expected = guess_accuracy(outcome)
    if expected is not None:
        return paragraph(
            _(
                "Guessing among the hidden answers (right {rate:.0%} of the time) and knowing all others gives "
                "{expected:.0%}.",
                rate=1 - (1 - expected) / hidden_share(spec),
                expected=expected,
            ),
            _("Its {n} layers hardly recover more.", n=spec.model.layers) if is_passed_on else "",
        )
    if is_passed_on and outcome.accuracy > accuracy_with_guesses(spec):
        return _("Its {n} layers can pass hidden answers on through the tokens in between.", n=spec.model.layers)
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


def fastest_fails(results: Sequence[Outcome]) -> tuple[str, str]:
    """Return the sentences about a variant that learns recall sooner than others, but fails with more pairs, and why.

    They are empty unless the first variant fails in the test with most pairs and another does not.
    """
    learned = [outcome for outcome in results if outcome.learned_at]
    tests = [(outcome, *test) for outcome in learned if (test := outcome.largest_test("items"))]
    own, numbers = results[0].rows[0].spec.items, {pairs for _outcome, pairs, _share in tests}
    if len(numbers) != 1 or (pairs := max(numbers)) <= own:
        return "", ""
    fast, _pairs, lost = min(tests, key=lambda test: _steps(test[0]))
    solving = [(outcome, share) for outcome, _pairs, share in tests if share >= THRESHOLD]
    if min((_steps(outcome) for outcome, _share in solving), default=0) <= _steps(fast):
        return "", ""
    listed = (
        _("{name} ({result})", name=escape_markdown(each.name_in_sentence), result=percent(share))
        for each, share in solving
    )
    text = paragraph(
        _(
            "{fast} learns to recall {own} pairs sooner than {names}.",
            fast=escape_markdown(in_words(fast.name)),
            own=own,
            names=enumeration(escape_markdown(each.name_in_sentence) for each, _share in solving),
        ),
        _n(
            "With {pairs} pairs, only {names} still gets at least {most} right; {fast} gets {share}.",
            "With {pairs} pairs, only {names} still get at least {most} right; {fast} gets {share}.",
            n=len(solving),
            pairs=pairs,
            names=enumeration(listed),
            fast=escape_markdown(fast.name_in_sentence),
            share=percent(lost),
            most=percent(THRESHOLD),
        ),
    )
    reason = _interference(fast, [each for each, _share in solving], pairs)
    return text, paragraph(reason, _delta_note(fast, lost, tests) if reason else "")


def _steps(outcome: Outcome) -> int:
    """Return the steps after which a variant that learned the task had learned it."""
    assert outcome.learned_at
    return outcome.learned_at[0]


def _interference(fast: Outcome, solving: Sequence[Outcome], pairs: int) -> str:
    """Return why only slower variants solve the test with most pairs.

    The reason is left out unless the state of ``fast`` is one matrix, and the variants that solve the test store a
    cache that grows with the text.
    """
    caches = {numbers_stored(outcome.rows[0].spec.model) for outcome in solving}
    is_matrix = registry.from_word(fast.word).variant in registry.matrix_states()
    if not is_matrix or len(caches) != 1 or any(constant for constant, _grown in caches):
        return ""
    return _n(
        "**{fast}** adds all {pairs} pairs up in one state, in which they interfere, whereas {names} stores each "
        "token separately.",
        "**{fast}** adds all {pairs} pairs up in one state, in which they interfere, whereas {names} store each "
        "token separately.",
        n=len(solving),
        pairs=pairs,
        fast=escape_markdown(in_words(fast.name)),
        names=enumeration(f"**{escape_markdown(outcome.name_in_sentence)}**" for outcome in solving),
    )


def _delta_note(fast: Outcome, accuracy: float, tests: Sequence[tuple[Outcome, int, float]]) -> str:
    """Return the sentence that all variants with the delta rule learn later and recall less than linear attention.

    It is empty if this is not so, or if ``fast``, the variant that learned first, is not linear attention.

    Args:
        fast: the variant that learned first.
        accuracy: its accuracy in the test with most pairs.
        tests: the number of pairs and the accuracy in this test, by variant that learned the task.
    """
    delta = [(outcome, share) for outcome, _pairs, share in tests if outcome.word in DELTA_RULE]
    is_worse = all(_steps(each) > _steps(fast) and share < accuracy - MAX_CLOSE for each, share in delta)
    if fast.word != "linear" or not delta or not is_worse:
        return ""
    return _n(
        "{names} learns later and recalls fewer pairs here than Linear, although the delta rule is meant to reduce "
        "interference.",
        "{names} learn later and recall fewer pairs here than Linear, although the delta rule is meant to reduce "
        "interference.",
        n=len(delta),
        names=enumeration(f"**{escape_markdown(outcome.name_in_sentence)}**" for outcome, _share in delta),
    )
