"""The Continuation view of the Model page: the texts that each model generates, and where they start to differ."""

from collections.abc import Sequence

import streamlit as st

from app.words.finding import Finding, Lines
from app.words.i18n import _, _n, escape_markdown, paragraph
from attention_core.experiments import continuation
from attention_core.experiments.continuation import ContinuationRow, ContinuationTask, first_difference
from attention_core.formatting import memory
from attention_core.limits import current
from attention_core.variant import SOFTMAX
from pages.model import words
from pages.model.options import ORIGINAL, Question, display_name, name_in_sentence
from pages.model.view import View

END = 80
"""Largest number of characters of the text's end that is shown."""
SEED = 1
"""Seed of the sampling, the same for all models."""


def _draw(question: Question, rows: Sequence[ContinuationRow], _key: str) -> None:
    if rows[0].prompt < current().swap_tokens:  # A longer text is cut.
        st.markdown(_("The text ends: “{end}” Each model continues it.", end=end_of_text(question.text)))
    st.table(_table(rows), border="horizontal", hide_index=True)


def end_of_text(text: str) -> str:
    """Return the last words of a text on one line, escaped for Markdown."""
    end = text.strip()
    if len(end) > END:
        end = end[-END:]
        end = "…" + (end.partition(" ")[2] or end)
    return one_line([end])


def _notes(question: Question, rows: Sequence[ContinuationRow]) -> str:
    has_bold = any("**" in cell for row in _table(rows) for cell in row.values())
    return paragraph(
        _("If a text begins like the original model's, bold type starts at the first token that differs.")
        if has_bold
        else "",
        _n(
            "SmolLM2-135M (4-bit quantised) gets {n} token as the prompt and generates {steps}.",
            "SmolLM2-135M (4-bit quantised) gets {n} tokens as the prompt and generates {steps}.",
            n=rows[0].prompt,
            steps=continuation.STEPS,
        ),
        _("The cache holds the keys and values that later tokens can attend to, or a state of fixed size, in float32."),
        words.results_origin(rows),
    )


def tasks(question: Question) -> tuple[ContinuationTask, ...]:
    """Return the tasks of this view: to continue the text with the original model and with each variant."""
    return continuation.tasks(question.text, question.words, question.layers, seed=SEED, live=question.live)


def name_of(row: ContinuationRow) -> str:
    """Return the name of the model that generated a row."""
    return display_name(row.word) if row.layers else _(ORIGINAL)


def _table(rows: Sequence[ContinuationRow]) -> list[dict[str, str]]:
    """Return one table row per model: its greedy and its sampled continuation, and the size of its cache.

    Continuations that are not known yet are empty.
    """
    by_model = {(row.layers, row.word, row.seed): row for row in rows}
    return [
        {
            _("Model"): escape_markdown(name_of(row)),
            **{
                heading: marked_continuation(
                    by_model.get((row.layers, row.word, seed)), by_model.get(((), SOFTMAX, seed))
                )
                for heading, seed in ((_("Most likely tokens"), None), (_("Sampled tokens (same seed)"), SEED))
            },
            _("Cache"): memory(row.held),
        }
        for row in rows
        if row.seed is None
    ]


def marked_continuation(row: ContinuationRow | None, original: ContinuationRow | None) -> str:
    """Return a continuation as Markdown; from the first token that differs from the original model's, it is bold.

    A continuation that differs from its first token on is not bold.
    """
    if row is None or original is None:
        return ""
    divergence = first_difference(original, row)
    if divergence == 0:
        return f"…{one_line(row.written)}"
    same, other = row.written[:divergence], () if divergence is None else row.written[divergence:]
    bold = one_line(other).strip()
    return f"…{one_line(same)} **{bold}**" if bold else f"…{one_line(same)}"


def repeated_tokens(row: ContinuationRow) -> int:
    """Return the number of tokens that a continuation repeats from its beginning to its end.

    It is at most half of the tokens; 0 means that the continuation repeats no such beginning.
    """
    ids = row.ids
    return next((n for n in range(1, len(ids) // 2 + 1) if ids[n:] == ids[:-n]), 0)


def one_line(pieces: Sequence[str]) -> str:
    """Return tokens as one line of text, escaped for Markdown."""
    return escape_markdown(" ".join("".join(pieces).split(" ")).replace("\n", " ↵ ").replace("\r", " "))


def describe_continuations(rows: Sequence[ContinuationRow]) -> Lines:
    """Return the findings about texts that repeat a phrase, and about the first token that differs in the other texts.

    The last explanation has the size of the smallest cache.
    """
    greedy = [row for row in rows if row.seed is None]
    original = next((row for row in greedy if not row.layers), None)
    changed = [row for row in greedy if row.layers]
    if original is None or not changed:
        return []
    smallest = min(changed, key=lambda row: row.held)
    names = [name_in_sentence(row.word, [each.word for each in changed]) for row in changed]
    divergences = [(name, first_difference(original, row)) for name, row in zip(names, changed, strict=True)]
    by_position: dict[int | None, list[str]] = {}
    for name, position in divergences:
        by_position.setdefault(position, []).append(name)
    other, same = by_position.get(0, []), by_position.get(None, [])
    phrases = {
        name: phrase
        for name, row in zip(names, changed, strict=True)
        if name in other and (phrase := one_line(row.written[: repeated_tokens(row)]).strip())
    }
    other = [name for name in other if name not in phrases]
    sentences = [
        *(
            _("**With {name}, the most likely text repeats “{phrase}” to the end.**", name=name, phrase=phrase)
            for name, phrase in phrases.items()
        ),
        _(
            "**With {names}, the most likely text differs from the first token on.**",
            names=words.listed_names(other, len(changed)),
        )
        if other
        else "",
        *(
            _(
                "**With {names}, the most likely text equals the original model's up to token {n} of {all}.**",
                names=words.listed_names(by_position[position], len(changed)),
                n=position,
                all=len(original.ids),
            )
            for position in sorted(filter(None, by_position), reverse=True)
        ),
        _(
            "**With {names}, the most likely text equals the original model's.**",
            names=words.listed_names(same, len(changed)),
        )
        if same
        else "",
    ]
    caches = ""
    if smallest.held < original.held:
        values = {
            "least": memory(smallest.held),
            "first": memory(original.held),
            "share": smallest.held / original.held,
        }
        caches = (
            _(
                "With {names}, the cache has {share:.0%} of its original size ({least} instead of {first}).",
                **values,
                names=words.listed_names(names, len(changed)),
            )
            if {row.held for row in changed} == {smallest.held}
            else _(
                "Among the variants, the smallest cache takes {least}. The original model's cache takes {first}.",
                **values,
            )
        )
    *before, last = filter(None, sentences)
    return [*([Finding(each)] for each in before), [Finding(last, caches)]]


CONTINUATION = View(
    experiment="continuation",
    tasks=tasks,
    describe=lambda question, rows: (
        describe_continuations(rows) if question.words else _("No replacement for softmax is chosen yet.")
    ),
    draw=_draw,
    notes=_notes,
    file="continuation.csv",
)
