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
    st.table(_table(rows), hide_index=True)


def _notes(question: Question, rows: Sequence[ContinuationRow]) -> str:
    return paragraph(
        _(
            "SmolLM2-135M (4-bit quantised) gets {n} tokens as the prompt and generates {steps} tokens. Softmax is "
            "replaced in {where}. A continuation is bold from the first token that differs from the original model's.",
            where=question.where,
            n=rows[0].prompt,
            steps=continuation.STEPS,
        ),
        _("Cache (float32): either the keys and values that later tokens can attend to, or a state."),
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
                for heading, seed in ((_("Greedy"), None), (_("Sampled (same seed)"), SEED))
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
    """Return after how many tokens each model diverges from the original model."""
    greedy = [row for row in rows if row.seed is None]
    first = next((row for row in greedy if not row.layers), None)
    return "  \n".join(_divergence(row, first) for row in greedy if first and row.layers)


def _divergence(row: ContinuationRow, first: ContinuationRow) -> str:
    at, name = first_difference(first, row), name_of(row)
    if at is None:
        return _("**{name}** generates the same {n} tokens as the original model.", name=name, n=len(row.ids))
    if at == 0:
        return _("**{name}** diverges from the original model at the first token.", name=name)
    return _(
        "**{name}** generates the same tokens as the original model up to token {n} of {all}, and then diverges.",
        name=name,
        n=at,
        all=len(row.ids),
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
