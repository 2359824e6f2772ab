"""How many layers: both numbers against how many are replaced, from either end or the middle, and one at a time."""

from collections.abc import Sequence

import streamlit as st

from app.text import _, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import FLOORS, CopyRow, ReadingRow, SwapRow
from attention_core.writing import number
from pages.model import reading, sweep, words
from pages.model.options import Question, called, depth
from pages.model.sweep import Both


def show(question: Question) -> None:
    """Replace more and more layers, or one after the other."""
    edge = question.options.edge
    asked = [*question.words, *(floor for floor in swap.floors(edge) if floor not in question.words)]
    single = edge == "single"

    def draw(rows: list[SwapRow], key: str) -> None:
        lines = {word: pairs for word in asked if (pairs := found(rows, word, single=single))}
        st.markdown(in_one_sentence(lines, rows, edge))
        sweep.draw(
            lines, rows, key=key, x_title=_("the layer that is replaced") if single else _("layers that are replaced")
        )
        st.caption(
            paragraph(
                _(
                    "Grey and broken: what looks at nothing, the plain mean of the values and, but for one layer at a "
                    "time, random weights; who is no better might as well not attend. Copying is one draw of {n} "
                    "random tokens.",
                    n=swap.PERIOD,
                ),
                words.origin(rows),
            )
        )

    rows = sweep.at_once(
        swap.layer_tasks(question.text, asked, edge, depth(), live=question.live), draw, key="model.layers"
    )
    reading.take_away(rows)


def found(rows: Sequence[SwapRow], word: str, *, single: bool) -> list[Both]:
    """One variant's numbers by how many layers it stands in, or by the layer."""
    own = [row for row in rows if row.word == word and row.layers]
    return sweep.pairs(own, lambda row: float(row.layers[0] if single else len(row.layers)))


def in_one_sentence(lines: dict[str, list[Both]], rows: Sequence[SwapRow], edge: str) -> str:
    """How far each variant gets before the text is read worse and before copying is lost."""
    read = next((row.perplexity for row in rows if isinstance(row, ReadingRow) and not row.layers), None)
    copy = next((row for row in rows if isinstance(row, CopyRow) and not row.layers), None)
    if read is None or copy is None:
        return ""
    told = [
        _single(called(word), pairs, read, copy) if edge == "single" else _several(called(word), pairs, read, copy)
        for word, pairs in lines.items()
        if word not in FLOORS
    ]
    return paragraph(*told)


def _half(copy: CopyRow) -> float:
    """The loss at which half of what copying saves is gone."""
    return (copy.first + copy.copied) / 2


def _several(name: str, pairs: Sequence[Both], read: float, copy: CopyRow) -> str:
    reads = [p.x for p in pairs if p.perplexity is not None and p.perplexity > words.WORSE * read]
    copies = [p.x for p in pairs if p.copied is not None and p.copied > _half(copy)]
    told = {
        "name": name,
        "worse": words.WORSE,
        "reads": f"{min(reads, default=0):.0f}",
        "copies": f"{min(copies, default=0):.0f}",
    }
    if reads and copies:
        return _(
            "**{name}**: {reads} is the first number of layers tried at which perplexity is more than {worse:g} times "
            "what it was, {copies} the first at which more than half of copying is gone.",
            **told,
        )
    if copies:
        return _(
            "**{name}**: perplexity stays below {worse:g} times what it was at every number of layers tried, and "
            "{copies} is the first at which more than half of copying is gone.",
            **told,
        )
    if reads:
        return _(
            "**{name}**: {reads} is the first number of layers tried at which perplexity is more than {worse:g} times "
            "what it was, and more than half of copying stays at every one.",
            **told,
        )
    return _(
        "**{name}**: at every number of layers tried perplexity stays below {worse:g} times what it was, and more than "
        "half of copying stays.",
        **told,
    )


def _single(name: str, pairs: Sequence[Both], read: float, copy: CopyRow) -> str:
    able = [p for p in pairs if p.perplexity is not None and p.copied is not None]
    if not able:
        return ""
    reads, copies = max(able, key=lambda p: p.perplexity or 0.0), max(able, key=lambda p: p.copied or 0.0)
    return _(
        "**{name}**: alone, layer {layer} matters most to the text, perplexity {before} → {after}, and layer {other} "
        "to copying, {whole} → {copied} nats a token.",
        name=name,
        layer=f"{reads.x:.0f}",
        before=number(read, 3),
        after=number(reads.perplexity or 0.0, 3),
        other=f"{copies.x:.0f}",
        whole=number(copy.copied, 2),
        copied=number(copies.copied or 0.0, 2),
    )
