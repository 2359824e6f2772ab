"""The Continuation view: the text that each model generates, greedily and by sampling, and where the texts diverge."""

from collections.abc import Sequence

import streamlit as st

from app.words.i18n import _, escape_markdown, paragraph
from attention_core.experiments import continuation
from attention_core.experiments.continuation import ContinuationRow, ContinuationTask, first_difference
from attention_core.formatting import memory
from attention_core.variant import SOFTMAX
from pages.model import words
from pages.model.options import ORIGINAL, Question, called
from pages.model.view import View

SEED = 1
"""Seed of the sampling, the same for all models."""


def _draw(_question: Question, rows: Sequence[ContinuationRow], _key: str) -> None:
    st.table(_table(rows), border="horizontal", hide_index=True)


def _notes(question: Question, rows: Sequence[ContinuationRow]) -> str:
    return paragraph(
        _(
            "A text is bold from its first token that differs from the original model's text. SmolLM2-135M "
            "(4-bit quantised) gets {n} tokens as the prompt and generates {steps}. Softmax is replaced in "
            "{where}.",
            where=question.where,
            n=rows[0].prompt,
            steps=continuation.STEPS,
        ),
        _("The cache holds the keys and values that later tokens can attend to, or a state of fixed size, in float32."),
        words.origin(rows),
    )


def tasks(question: Question) -> tuple[ContinuationTask, ...]:
    """Return the tasks of this view."""
    return continuation.tasks(question.text, question.words, question.layers, seed=SEED, live=question.live)


def name_of(row: ContinuationRow) -> str:
    """Return the name of the model that generated a row."""
    return called(row.word) if row.layers else _(ORIGINAL)


def _table(rows: Sequence[ContinuationRow]) -> list[dict[str, str]]:
    """Return one line per model: its greedy and its sampled continuation, and the size of its cache.

    Continuations that are not known yet are empty.
    """
    known = {(row.layers, row.word, row.seed): row for row in rows}
    return [
        {
            _("Model"): escape_markdown(name_of(row)),
            **{
                heading: marked(known.get((row.layers, row.word, seed)), known.get(((), SOFTMAX, seed)))
                for heading, seed in ((_("Most likely tokens"), None), (_("Sampled tokens (same seed)"), SEED))
            },
            _("Cache"): memory(row.held),
        }
        for row in rows
        if row.seed is None
    ]


def marked(row: ContinuationRow | None, first: ContinuationRow | None) -> str:
    """Return a continuation as Markdown, in bold from the token where it diverges from the first one."""
    if row is None or first is None:
        return ""
    parts = first_difference(first, row)
    same, other = row.written[:parts], () if parts is None else row.written[parts:]
    bold = plain(other).strip()
    return f"…{plain(same)} **{bold}**" if bold else f"…{plain(same)}"


def plain(pieces: Sequence[str]) -> str:
    """Return tokens as one line of text, escaped for Markdown."""
    return escape_markdown(" ".join("".join(pieces).split(" ")).replace("\n", " ↵ ").replace("\r", " "))


def in_words(rows: Sequence[ContinuationRow]) -> str:
    """Return after how many tokens each model diverges from the original model, and the smallest cache."""
    greedy = [row for row in rows if row.seed is None]
    first = next((row for row in greedy if not row.layers), None)
    changed = [row for row in greedy if row.layers]
    if first is None or not changed:
        return ""
    least = min(changed, key=lambda row: row.held)
    places = [(name_of(row), first_difference(first, row)) for row in changed]
    other, same = ([name for name, at in places if at == wanted] for wanted in (0, None))
    return paragraph(
        _(
            "**With {names}, the generated text differs from the original model's at the first token.**",
            names=words.named(other, len(changed)),
        )
        if other
        else "",
        *(
            _(
                "**With {name}, the generated text is the same as the original model's up to token {n} of {all}.**",
                name=name,
                n=at,
                all=len(first.ids),
            )
            for name, at in places
            if at
        ),
        _(
            "**With {names}, the generated text is the same as the original model's.**",
            names=words.named(same, len(changed)),
        )
        if same
        else "",
        _(
            "The smallest cache of a variant takes {least}, and that of the original model takes {first}.",
            least=memory(least.held),
            first=memory(first.held),
        )
        if least.held < first.held
        else "",
    )


CONTINUATION = View(
    experiment="continuation",
    tasks=tasks,
    describe=lambda question, rows: in_words(rows),
    draw=_draw,
    notes=_notes,
    file="continuation.csv",
    has_charts=False,
)
