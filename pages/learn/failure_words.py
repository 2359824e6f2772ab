"""Sentences of the Learn page: why a variant does not learn, or fails with more key-value pairs than in training."""

from collections.abc import Sequence

from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core.formatting import percent
from attention_core.learning.defaults import default_plan
from attention_core.learning.hidden_answers import accuracy_with_guesses, hidden_share
from attention_core.learning.model import ModelSpec
from attention_core.learning.recorded_runs import recorded_rows
from pages.learn.outcomes import MAX_CLOSE, THRESHOLD, Outcome, outcomes

STRONG_DELTANET = "deltanet~strength~2.0"
"""DeltaNet with write strengths up to 2, as in links."""


def cause(outcome: Outcome) -> str:
    """Return the sentences about why a variant did not learn the task; empty if it did, or if no cause is known."""
    if outcome.step == 0 or outcome.learned_at is not None:
        return ""
    spec = outcome.rows[0].spec
    hidden = hidden_share(spec)
    if hidden:
        reason = paragraph(_("Its mask hides {hidden} of the answers.", hidden=percent(hidden)), _hidden_note(outcome))
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


def _hidden_note(outcome: Outcome) -> str:
    """Return the sentence that compares the accuracy with guesses of the hidden answers; empty if no reason is known.

    With several layers, tokens in between can pass hidden answers on.
    """
    spec = outcome.rows[0].spec
    if (expected := guess_accuracy(outcome)) is not None:
        return _(
            "A model that guesses these and knows all others would get about as many right ({expected}).",
            expected=percent(expected),
        )
    if hidden_share(spec, layers=spec.model.layers) < hidden_share(spec) and outcome.accuracy > accuracy_with_guesses(
        spec
    ):
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


def fastest_fails(results: Sequence[Outcome]) -> str:
    """Return the sentences about a variant that learns recall sooner than others, but fails with more pairs.

    The text is empty unless the first variant fails in the test with most pairs and another does not.
    """
    learned = [outcome for outcome in results if outcome.learned_at]
    tests = [(outcome, *test) for outcome in learned if (test := outcome.largest_test("items"))]
    own, numbers = results[0].rows[0].spec.items, {pairs for _outcome, pairs, _share in tests}
    if len(numbers) != 1 or (pairs := max(numbers)) <= own:
        return ""
    fast, _pairs, lost = min(tests, key=lambda test: _steps(test[0]))
    solving = [(outcome, share) for outcome, _pairs, share in tests if share >= THRESHOLD]
    if min((_steps(outcome) for outcome, _share in solving), default=0) <= _steps(fast):
        return ""
    listed = (
        _("{name} ({result})", name=escape_markdown(each.name_in_sentence), result=percent(share))
        for each, share in solving
    )
    return paragraph(
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


def _steps(outcome: Outcome) -> int:
    """Return the steps after which a variant that learned the task had learned it."""
    assert outcome.learned_at
    return outcome.learned_at[0]
