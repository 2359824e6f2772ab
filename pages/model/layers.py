"""The Layers view: perplexity and copying against the number of replaced layers, or with one layer replaced."""

from collections.abc import Sequence

import streamlit as st

from app.words.i18n import _, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import FLOORS, CopyRow, ReadingRow, SwapRow
from attention_core.formatting import number
from pages.model import layer_map, reading, sweep, words
from pages.model.options import Question, called, depth
from pages.model.sweep import Both


def show(question: Question) -> None:
    """Measure growing numbers of replaced layers, or each layer alone, and draw the results."""
    edge = question.options.edge
    asked = [*question.words, *(floor for floor in FLOORS if floor not in question.words)]
    single = edge == "single"

    def draw(rows: list[SwapRow], key: str) -> None:
        lines = {word: pairs for word in asked if (pairs := found(rows, word, single=single))}
        st.markdown(in_one_sentence(lines, rows, edge))
        if single:
            layer_map.draw(lines, rows, key=key)
        else:
            sweep.draw(lines, rows, key=key, x_title=_("layers that are replaced"))
        st.caption(paragraph(_held_against(single), words.origin(rows)))

    rows = sweep.at_once(
        swap.layer_tasks(question.text, asked, edge, depth(), live=question.live), draw, key="model.layers"
    )
    reading.take_away(rows)


def _held_against(single: bool) -> str:
    """Return the caption on the two baselines, which attend to nothing, and on the copy test."""
    values = {"mean": called(FLOORS[0]), "random": called(FLOORS[1]), "n": swap.PERIOD}
    if single:
        return _(
            "{mean} and {random} look at nothing; who is no better might as well not attend. Copying is one draw of "
            "{n} random tokens.",
            **values,
        )
    return _(
        "Grey and broken: {mean} and {random}, which look at nothing; who is no better might as well not attend. "
        "Copying is one draw of {n} random tokens.",
        **values,
    )


def found(rows: Sequence[SwapRow], word: str, *, single: bool) -> list[Both]:
    """Return one variant's numbers by the number of replaced layers or, with ``single``, by the layer."""
    own = [row for row in rows if row.word == word and row.layers]
    return sweep.pairs(own, lambda row: float(row.layers[0] if single else len(row.layers)))


def in_one_sentence(lines: dict[str, list[Both]], rows: Sequence[SwapRow], edge: str) -> str:
    """Return how many layers each variant can replace before perplexity rises and before copying is lost."""
    read = next((row.perplexity for row in rows if isinstance(row, ReadingRow) and not row.layers), None)
    copy = next((row for row in rows if isinstance(row, CopyRow) and not row.layers), None)
    if read is None or copy is None:
        return ""
    sentences, floors = [], [lines[floor] for floor in FLOORS if floor in lines]
    for word, pairs in lines.items():
        if word not in FLOORS and edge == "single":
            sentences.append(paragraph(_single(called(word), pairs, read, copy), _beaten(pairs, floors)))
        elif word not in FLOORS:
            sentences.append(_several(called(word), pairs, read, copy))
    return "  \n".join(filter(None, sentences))


def _half(copy: CopyRow) -> float:
    """Return the loss at which half of what copying saves is lost."""
    return (copy.first + copy.copied) / 2


def _several(name: str, pairs: Sequence[Both], read: float, copy: CopyRow) -> str:
    reads = [p.x for p in pairs if p.perplexity is not None and p.perplexity > words.WORSE * read]
    copies = [p.x for p in pairs if p.copied is not None and p.copied > _half(copy)]
    values = {
        "name": name,
        "worse": words.WORSE,
        "reads": f"{min(reads, default=0):.0f}",
        "copies": f"{min(copies, default=0):.0f}",
    }
    if reads and copies:
        return _(
            "**{name}**: {reads} is the first number of layers tried at which perplexity is more than {worse:g}× "
            "what it was, {copies} the first at which more than half of copying is gone.",
            **values,
        )
    if copies:
        return _(
            "**{name}**: perplexity stays below {worse:g}× what it was at every number of layers tried, and "
            "{copies} is the first at which more than half of copying is gone.",
            **values,
        )
    if reads:
        return _(
            "**{name}**: {reads} is the first number of layers tried at which perplexity is more than {worse:g}× "
            "what it was, and more than half of copying stays at every one.",
            **values,
        )
    return _(
        "**{name}**: at every number of layers tried perplexity stays below {worse:g}× what it was, and more than "
        "half of copying stays.",
        **values,
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


def _beaten(pairs: Sequence[Both], floors: Sequence[Sequence[Both]]) -> str:
    """Return in how many layers a variant beats the baselines, which attend to nothing; empty if not comparable."""
    reads = _against([{p.x: p.perplexity for p in own if p.perplexity is not None} for own in (pairs, *floors)])
    copies = _against([{p.x: p.copied for p in own if p.copied is not None} for own in (pairs, *floors)])
    if not floors or not reads or not copies:
        return ""
    return _(
        "It reads better than what looks at nothing in {reads} of {n} layers, and copies better in {copies} of {m}.",
        reads=sum(reads),
        n=len(reads),
        copies=sum(copies),
        m=len(copies),
    )


def _against(found: Sequence[dict[float, float]]) -> list[bool]:
    """Return, for each key of all dictionaries, whether the first dictionary has the smallest number."""
    return [all(found[0][x] < other[x] for other in found[1:]) for x in set.intersection(*map(set, found))]
