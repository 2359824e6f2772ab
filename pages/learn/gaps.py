"""Messages of the Learn page that say which results are missing, and how to get them."""

from collections.abc import Sequence

import attention_core as ac
from app.words.i18n import N_, _, _n, enumeration, escape_markdown
from app.words.labels import in_words, label
from attention_core.experiments.learning import LearnRow
from attention_core.learning.defaults import TEST_ITEMS, TEST_LENGTHS
from attention_core.learning.learning_task import LearningTask
from pages.learn.options import max_variants
from pages.learn.outcomes import Outcome, PartOutcome
from pages.learn.part_words import PART_NAMES


def not_recorded(chosen: Sequence[ac.Attention], rows: Sequence[LearnRow]) -> str:
    """Return a message that lists the chosen variants without a recorded run; empty without any."""
    recorded = {each.row.variant for each in rows}
    names = [escape_markdown(in_words(label(attention))) for attention in chosen if attention.word not in recorded]
    if not names:
        return ""
    return _(
        "No recorded runs with these settings: {names}. Press “Train on this server” to train them.",
        names=enumeration(names),
    )


def not_recorded_at_all() -> str:
    """Return the message that no run is recorded with the chosen settings, and what to do."""
    return _("No run is recorded with these settings. Press “Train on this server” to train the models.")


def variants_left_out(chosen: Sequence[ac.Attention], seeds: int, models: int) -> str:
    """Return a message that lists the variants that would exceed the number of models to train; empty if none would.

    For each variant, ``models`` models are trained.
    """
    names = [escape_markdown(in_words(label(attention))) for attention in chosen[max_variants(models) :]]
    if not names:
        return ""
    return _n(
        "Too many models for this machine: with {n} seed, {names} would not be trained. Choose fewer variants.",
        "Too many models for this machine: with {n} seeds, {names} would not be trained. Choose fewer variants or "
        "fewer seeds.",
        n=seeds,
        names=enumeration(names),
    )


def no_parts_removed(results: Sequence[PartOutcome], *, live: bool) -> str:
    """Return the message that there are no measurements without a part, and why.

    Args:
        results: the measurements of the complete models.
        live: whether these models were trained on this server.
    """
    if not any(outcome.parts for outcome in results):
        return _("These models have no part that can be removed.")
    if live:
        return _("No model with a part removed is trained yet.")
    return _(
        "No runs with a part removed are recorded for this task and these variants. Press “Train on this server” to "
        "train them."
    )


def not_trained_without(results: Sequence[PartOutcome]) -> list[str]:
    """Return messages that list the variants of which no model is trained without a part: any part, or some parts."""
    names: dict[tuple[str, ...], list[str]] = {}
    for outcome in results:
        if missing := tuple(part for part in outcome.parts if part not in outcome.ablations):
            missing = missing if outcome.ablations else ()
            names.setdefault(missing, []).append(escape_markdown(outcome.full.name_in_sentence))
    return [
        _(
            N_("No runs without {parts} are recorded for {names}.")
            if parts
            else N_("No runs with a part removed are recorded for {names}."),
            names=enumeration(names[parts]),
            parts=enumeration(_(PART_NAMES[part]) for part in parts),
        )
        for parts in sorted(names)
    ]


def no_tests(task: LearningTask, *, by: str) -> str:
    """Return a message if trained models of the task are not tested; empty if they are.

    Args:
        task: the task.
        by: the type of test, ``"length"`` (longer sequences) or ``"items"`` (more items to remember).
    """
    if task.key in (TEST_LENGTHS if by == "length" else TEST_ITEMS):
        return ""
    if by == "length":
        return _("Models of the task “{task}” are not tested on longer sequences.", task=_(task.title))
    return _(
        "Models trained on the task “{task}” are not tested with more items to remember than in training.",
        task=_(task.title),
    )


def missing_tests(results: Sequence[Outcome]) -> str:
    """Return the message that replaces the chart of tests while no test results are available."""
    if all(outcome.is_trained for outcome in results):
        return _("No tests are recorded for these variants and settings. Press “Train on this server”.")
    return _("The trained models are tested when training is complete.")
