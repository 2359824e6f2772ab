"""The Budget view: perplexity and copying against each variant's budget, and the loss against the text position."""

from collections.abc import Sequence

import streamlit as st

from app.figures.lines.curves import Curve, curves
from app.ui import chart
from app.words.i18n import _, paragraph
from app.words.labels import readable
from attention_core import registry
from attention_core.experiments import swap
from attention_core.experiments.swap import ReadingRow, SwapRow
from attention_core.experiments.swap.derived import Both, originals, pairs, preserved_from, running_mean
from attention_core.model_patching import UNIFORM
from pages.model import reading, sweep, words
from pages.model.options import Question

SMOOTH = 32
"""Tokens over which losses are averaged, because a single loss depends more on the token than on its position."""


def show(question: Question) -> None:
    """Measure every budget of each variant and draw the results, with the loss by position."""
    with_budget = [word for word in question.words if word != UNIFORM and registry.from_word(word).variant.budget]
    if not with_budget:
        st.info(
            _("The selected variants have no budget setting. Add a variant with a window, with sinks or with top-k.")
        )
        return
    tasks = (
        *swap.tasks(question.text, question.words, question.layers, live=question.live),
        *swap.budget_tasks(question.text, with_budget, question.layers, swap.PERIOD * 2, live=question.live),
    )

    def lines(rows: Sequence[SwapRow]) -> dict[str, list[Both]]:
        return {word: both for word in with_budget if (both := along(rows, word))}

    def draw(rows: list[SwapRow], key: str) -> None:
        sweep.draw(lines(rows), rows, key=key, x_title=_("budget setting of each variant"), log_x=True, name_of=swept)
        _positions(question, rows, key)
        st.caption(
            paragraph(
                _(
                    "Perplexity counts as preserved if it is at most {same:g}× that of the original model. The "
                    "original model has a lower loss on repeated tokens than on their first occurrence. "
                    "Copying counts as preserved if at most {copied:.0%} of this difference is lost.",
                    same=words.SAME,
                    copied=words.COPIED,
                ),
                words.origin(rows),
            )
        )

    rows = sweep.run(tasks, draw, key="model.budget", describe=lambda rows: in_words(lines(rows), rows))
    reading.take_away(rows)


def along(rows: Sequence[SwapRow], word: str) -> list[Both]:
    """Return one variant's perplexity and copying loss by budget."""
    ladder = {each.word: budget(each.word) for each in swap.ladder(word, swap.PERIOD * 2)}
    return pairs([row for row in rows if row.layers], lambda row: ladder.get(row.word))


def swept(word: str) -> str:
    """Return the name of a line over a variant's budget: the variant, the budget, and other changed settings."""
    attention = registry.from_word(word)
    setting = attention.variant.budget
    assert setting is not None
    others = attention.params.changed().keys() - {setting.name}
    values = (f"{readable(name)} {_(str(getattr(attention.params, name)))}" for name in sorted(others))
    return " · ".join([_(attention.title), readable(setting.name), *values])


def budget(word: str) -> float:
    """Return the value of a variant's budget."""
    attention = registry.from_word(word)
    assert attention.variant.budget is not None
    return float(getattr(attention.params, attention.variant.budget.name))


def in_words(lines: dict[str, list[Both]], rows: Sequence[SwapRow]) -> str:
    """Return the budgets from which perplexity and copying are preserved, one line per variant."""
    read, copy = originals(rows)
    if read is None or copy is None:
        return ""
    most_copied = copy.copied + words.COPIED * (copy.first - copy.copied)
    return "  \n".join(
        _preserved(
            word,
            preserved_from(found, "perplexity", words.SAME * read.perplexity),
            preserved_from(found, "copied", most_copied),
        )
        for word, found in lines.items()
    )


def _preserved(word: str, reads: float | None, copies: float | None) -> str:
    attention = registry.from_word(word)
    assert attention.variant.budget is not None
    values = {
        "name": _(attention.title),
        "setting": readable(attention.variant.budget.name),
        "reads": reads,
        "copies": copies,
    }
    if reads is None and copies is None:
        return _("**{name}**: perplexity and copying are preserved at no tested value of {setting}.", **values)
    if reads is None:
        return _(
            "**{name}**: copying is preserved for {setting} ≥ {copies:g}. Perplexity is preserved at no tested "
            "value of {setting}.",
            **values,
        )
    if copies is None:
        return _(
            "**{name}**: perplexity is preserved for {setting} ≥ {reads:g}. Copying is preserved at no tested "
            "value of {setting}.",
            **values,
        )
    if reads == copies:
        return _("**{name}**: perplexity and copying are both preserved for {setting} ≥ {reads:g}.", **values)
    return _(
        "**{name}**: perplexity is preserved for {setting} ≥ {reads:g}, and copying for {setting} ≥ {copies:g}.",
        **values,
    )


def _positions(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    read = {(row.word, row.layers): row for row in rows if isinstance(row, ReadingRow) and row.losses}
    drawn = []
    for name, word, layers, colour in sweep.models(question):
        if (row := read.get((word, layers))) is not None:
            smooth = running_mean(row.losses, SMOOTH)
            xs = [float(SMOOTH + i) for i in range(len(smooth))]
            drawn.append(Curve(name, xs, smooth, colour=colour, marks=False))
    if drawn and drawn[0].x:
        title = _("loss (nats per token), mean of {n} tokens", n=SMOOTH)
        figure = curves(drawn, x_title=_("position in the text (tokens)"), y_title=title, height=340)
        message = _("Lines: the loss against the position in the text")
        chart.show(figure, key=f"{key}.position", name="loss-by-position", alt=message)
