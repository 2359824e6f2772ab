"""The Continuation view: the text that each model generates, greedily and by sampling, and where the texts diverge."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.ui import export
from app.words.i18n import _, escape_markdown, paragraph
from attention_core.experiments import continuation
from attention_core.experiments.continuation import ContinuationRow, ContinuationTask, first_difference
from attention_core.formatting import memory
from pages.model import sweep, words
from pages.model.options import ORIGINAL, Question, called, layers_in_words

SEED = 1
"""Seed of the sampling, the same for all models."""


def show(question: Question) -> None:
    """Generate a continuation with each model, and mark where it diverges from the original model's."""

    def draw(rows: list[ContinuationRow], key: str) -> None:
        for heading, seed in ((_("Greedy"), None), (_("Sampled (same seed)"), SEED)):
            own = [row for row in rows if row.seed == seed]
            if own:
                st.markdown(f"**{heading}**")
                st.markdown("  \n".join(line(row, own[0]) for row in own))
        st.dataframe(numbers(rows), hide_index=True, width="content")
        st.caption(
            paragraph(
                _(
                    "SmolLM2-135M (4-bit quantised) gets {n} tokens as the prompt and generates {steps} "
                    "tokens. Softmax is replaced in {where}. A continuation is bold from the first token that "
                    "differs from the original model's.",
                    where=layers_in_words(question.layers),
                    n=rows[0].prompt,
                    steps=continuation.STEPS,
                ),
                _("Cache (float32): either the keys and values that later tokens can attend to, or a state."),
                words.origin(rows),
            )
        )

    rows = sweep.run(tasks(question), draw, key="model.continuation", describe=in_words)
    if rows:
        export.download(_("Numbers (CSV)"), lambda: export.csv_of(rows), "continuation.csv")


def tasks(question: Question) -> tuple[ContinuationTask, ...]:
    """Return the tasks of this view."""
    return continuation.tasks(question.text, question.words, question.layers, seed=SEED, live=question.live)


def name_of(row: ContinuationRow) -> str:
    """Return the name of the model that generated a row."""
    return called(row.word) if row.layers else _(ORIGINAL)


def line(row: ContinuationRow, first: ContinuationRow) -> str:
    """Return a continuation as Markdown, in bold from the token where it diverges from the first one."""
    parts = first_difference(first, row)
    same, other = row.written[:parts], () if parts is None else row.written[parts:]
    bold = plain(other).strip()
    text = f"{plain(same)} **{bold}**" if bold else plain(same)
    return f"{escape_markdown(name_of(row))}: *…*{text}"


def plain(pieces: Sequence[str]) -> str:
    """Return tokens as one line of text, escaped for Markdown."""
    return escape_markdown(" ".join("".join(pieces).split(" ")).replace("\n", " ↵ ").replace("\r", " "))


def in_words(rows: Sequence[ContinuationRow]) -> str:
    """Return after how many tokens each model diverges from the original model."""
    greedy = [row for row in rows if row.seed is None]
    first = next((row for row in greedy if not row.layers), None)
    return paragraph(*(_divergence(row, first) for row in greedy if first and row.layers))


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


def numbers(rows: Sequence[ContinuationRow]) -> pd.DataFrame:
    """Return the memory of each model, one row per model."""
    greedy = [row for row in rows if row.seed is None]
    return pd.DataFrame(
        {_("Model"): [name_of(row) for row in greedy], _("Cache"): [memory(row.held) for row in greedy]}
    )
