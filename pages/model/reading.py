"""The Perplexity view of the Model page: each token's loss in the original model and with each variant."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from app.reading_board import Reading, ReadingState, reading_board
from app.state import presets
from app.words.finding import Finding, Lines
from app.words.i18n import _, paragraph
from attention_core import registry
from attention_core.experiments import swap
from attention_core.experiments.swap import ReadingRow, SwapRow
from attention_core.experiments.swap.derived import Score, attends_to_all, score
from attention_core.formatting import formatted, number
from attention_core.model_patching import UNIFORM
from attention_core.variant import SOFTMAX
from pages.model import sweep, token_details, words
from pages.model.options import TEXTS, Question, name_in_sentence, select_reading, short_name, tokens_text
from pages.model.view import View, show_definitions


def show(question: Question) -> None:
    """Draw the text, coloured by each token's loss, the details of the selected token, and the definitions."""
    # The details have their own column before a token is selected, so that a selection does not move the text.
    with st.container(key="model.reading"):
        text, *side = st.columns([5, 2] if question.words else [1], gap="medium")
    original, changed = readings(question, READING.run(question, figure=text.empty()))
    other = changed[_shown_index(question)] if question.words else None
    if original and other:
        with side[0]:
            token_details.show(question, original, other)
    show_definitions()


def tasks(question: Question) -> tuple[swap.SwapTask, ...]:
    """Return the tasks of this view, which the Copying view shares."""
    return swap.tasks(question.text, question.words, question.layers, seeds=swap.SEEDS, live=question.live)


def scores(question: Question, rows: Sequence[SwapRow]) -> tuple[Score, list[Score]]:
    """Return the scores (perplexity and copying loss) of the original model and of each variant."""
    original, *changed = [score(name, word, layers, rows) for name, word, layers, _colour in sweep.models(question)]
    return original, changed


def readings(question: Question, rows: Sequence[SwapRow]) -> tuple[ReadingRow | None, list[ReadingRow | None]]:
    """Return the losses on the text of the original model and of each variant; None if they are not measured yet."""
    by_model = {(row.word, row.layers): row for row in rows if isinstance(row, ReadingRow)}
    return by_model.get((SOFTMAX, ())), [by_model.get((word, question.layers)) for word in question.words]


def describe_outcome(
    question: Question, rows: Sequence[SwapRow], describe: Callable[[Score, Sequence[Score]], Lines]
) -> Lines | str:
    """Return the findings about the effect of the variants, or a message if no variant is chosen or measured yet.

    ``describe`` gets the scores of the original model and of the variants.
    """
    if not question.words:
        return _("No replacement for softmax is chosen yet.")
    original, changed = scores(question, rows)
    names = [name_in_sentence(word, question.words) for word in question.words]
    changed = [replace(each, name=name) for each, name in zip(changed, names, strict=True)]
    if complete := [each for each in changed if original.complete and each.complete]:
        return describe(original, complete)
    # The first task reads the text and returns a ``ReadingRow``. If the first row has another type, that task failed.
    refused = bool(rows) and not isinstance(rows[0], ReadingRow)
    return "" if refused else _("Reading the text …")


def measured_text(question: Question, rows: Sequence[SwapRow]) -> str:
    """Return the sentences about the text and the origin of the results."""
    reading = next((row for row in rows if isinstance(row, ReadingRow)), None)
    if reading is None:
        return ""
    tokens = tokens_text(reading.tokens, reading.total)
    on_what = _("Text: “{title}” ({tokens}).", title=question.title, tokens=tokens)
    return paragraph(on_what, words.results_origin(rows))


def _shown_index(question: Question) -> int:
    return min(question.options.shown, len(question.words) - 1)


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    original_row, changed_rows = readings(question, rows)
    if original_row is None:
        return
    original, changed = scores(question, rows)
    n = original_row.tokens
    variants = zip(question.words, changed, changed_rows, strict=True)
    reading_board(
        original_row.labels,
        _reading(original, original.name, original, original_row, str(n)),
        [
            _reading(each, short_name(word, question.words), original, row, visible_tokens(word, each, n))
            for word, each, row in variants
        ],
        [_("Visible tokens (at most)"), _("Perplexity (lower is better)"), _("× original"), _("Copying loss (nats)")],
        ReadingState(
            question.options.shown,
            -1 if question.options.token is None else question.options.token,
            question.options.against,
        ),
        floor=(
            _("Uniform guess over the vocabulary"),
            "0",
            f"{swap.VOCABULARY:,}",
            _number(swap.VOCABULARY / original.perplexity, 3),
            formatted(words.GUESS_LOSS, ".1f"),
        ),
        key=f"{key}.board",
        on_change=select_reading,
    )


def visible_tokens(word: str, each: Score, n: int) -> str:
    """Return the largest number of tokens that a query of a text of ``n`` tokens attends to, as text.

    It is an ellipsis if it is not known yet, and a dash if it depends on the data.
    """
    if math.isnan(each.perplexity):
        return "…"
    if each.hidden:
        return str(each.hidden.max_keys)
    return "–" if word != UNIFORM and registry.from_word(word).variant.pattern else str(n)


def _reading(each: Score, short: str, original: Score, row: ReadingRow | None, visible: str) -> Reading:
    numbers = [
        visible,
        _number(each.perplexity, 3),
        _number(each.perplexity / original.perplexity, 3),
        "…" if math.isnan(each.copied) else formatted(each.copied, ".1f"),
    ]
    losses = row.losses if row else ()
    return Reading(name=each.name, short=short, numbers=numbers, losses=losses, note=uncoloured_note(each))


def uncoloured_note(variant_score: Score) -> str:
    """Return the note on why the first tokens have no colour; empty if the variant's mask hides no tokens."""
    if variant_score.hidden is None or not variant_score.hidden.share:
        return ""
    if (n := variant_score.hidden.from_token) == 1:
        return _(
            "The first token has no colour, because there is no earlier token from which the model could predict it."
        )
    return _("The first {n} tokens have no colour, because the mask hides no token before them.", n=n)


def _number(value: float, digits: int) -> str:
    """Return a number as text, or an ellipsis if it is not known yet."""
    return "…" if math.isnan(value) else number(value, digits)


def _describe(question: Question, rows: Sequence[SwapRow]) -> Lines | str:
    def describe(original: Score, changed: Sequence[Score]) -> Lines:
        note = words.other_texts({name_in_sentence(word, shown): other_ratios(question, word) for word in shown})
        return [*words.describe_effects(original, changed), [Finding("", note)]]

    shown = question.words[: words.MAX_SENTENCES + 1]
    return describe_outcome(question, rows, describe)


def other_ratios(question: Question, word: str) -> list[float]:
    """Return the recorded perplexities of the other texts with a variant, relative to the original model.

    Texts in which the variant hides no pairs of tokens are left out, because its perplexity cannot change.
    """
    ratios = []
    for key, text in presets.texts().items():
        if key in TEXTS and text != question.text:
            models = ((SOFTMAX, ()), (word, question.layers))
            tasks = [swap.ReadingTask(text=text, word=each, layers=layers) for each, layers in models]
            rows = [row for row in map(swap.recorded_row, tasks) if isinstance(row, ReadingRow)]
            if len(rows) == len(tasks) and not attends_to_all(word, rows[0].tokens):
                ratios.append(rows[1].perplexity / rows[0].perplexity)
    return ratios


READING = View(tasks=tasks, describe=_describe, draw=_draw, notes=measured_text)
