"""The Continuation view: the text that each model generates, greedily and by sampling, and where the texts diverge."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from app.jobs import runs
from app.ui import export
from app.words.i18n import _, escape_markdown, paragraph
from attention_core.experiments import continuation
from attention_core.experiments.continuation import ContinuationRow, first_difference
from attention_core.formatting import memory
from pages.model.options import Question, called, layers_in_words

SEED = 1
"""Seed of the sampling, the same for all models."""


def show(question: Question) -> None:
    """Generate a continuation with each model, and mark where it diverges from the original model's."""

    def draw(rows: list[ContinuationRow], key: str) -> None:
        st.markdown(in_one_sentence(rows))
        ways = ((_("The likeliest token each time"), None), (_("By chance, the same for all"), SEED))
        for heading, seed in ways:
            own = [row for row in rows if row.seed == seed]
            if own:
                st.markdown(f"**{heading}**")
                st.markdown("  \n".join(line(row, own[0]) for row in own))
        st.dataframe(numbers(rows), hide_index=True)
        st.caption(
            paragraph(
                _(
                    "SmolLM2-135M, 4-bit quantised, changed in {where}, reads {n} tokens and writes {steps}. Bold: "
                    "from where it parts from the model as it is.",
                    where=layers_in_words(question.layers),
                    n=rows[0].prompt,
                    steps=continuation.STEPS,
                ),
                _(
                    "Kept: the keys and values that a later token may look at, or a state, in float32. The speed is "
                    "that of this page, which keeps all of them. Live: computed on this machine."
                ),
            )
        )

    rows = runs.run_immediately(
        "continuation",
        continuation.tasks(question.text, question.words, question.layers, seed=SEED),
        draw,
        key="model.continuation",
    )
    if rows:
        export.download(_("Numbers (CSV)"), lambda: export.csv_of(rows), "continuation.csv")


def name_of(row: ContinuationRow) -> str:
    """Return the name of the model that generated a row."""
    return called(row.word) if row.layers else _("The model as it is")


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


def in_one_sentence(rows: Sequence[ContinuationRow]) -> str:
    """Return after how many tokens each model diverges from the original model."""
    first: Mapping[int | None, ContinuationRow] = {row.seed: row for row in rows if not row.layers}
    sentences = []
    for row in rows:
        if row.layers and row.seed is None and None in first:
            at = first_difference(first[None], row)
            sentences.append(
                _("**{name}** writes the same {n} tokens.", name=name_of(row), n=len(row.ids))
                if at is None
                else _("**{name}** parts at the first token.", name=name_of(row))
                if at == 0
                else _("**{name}** parts after {n} of {all} tokens.", name=name_of(row), n=at, all=len(row.ids))
            )
    return paragraph(*sentences)


def numbers(rows: Sequence[ContinuationRow]) -> pd.DataFrame:
    """Return the speed and memory of each model, one row per model and kind of generation."""
    return pd.DataFrame(
        {
            _("who writes"): [name_of(row) for row in rows],
            _("how"): [_("likeliest") if row.seed is None else _("by chance") for row in rows],
            _("tokens per second"): [round((len(row.ids) - 1) / row.seconds, 1) for row in rows],
            _("kept to write on"): [memory(row.held) for row in rows],
        }
    )
