"""The Embeddings view of the Model page: the effect of a replaced attention on an encoder.

It shows how sentence embeddings change, and with them the ranking of sentences by similarity.
"""

import textwrap
from collections.abc import Sequence

import numpy as np

from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.figures.theme import GREY
from app.ui import chart, palette
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, enumeration, paragraph, predicates
from attention_core.experiments import embedding
from attention_core.experiments.embedding import EmbeddingRow, EmbeddingTask
from attention_core.formatting import formatted, number
from pages.model.options import ORIGINAL, Question, display_name, name_in_sentence
from pages.model.view import View

SENTENCES = (
    N_("The boy cannot find the key to the shed."),
    N_("She searched every drawer for her missing ring."),
    N_("A locksmith opened the door for them."),
    N_("The children hid behind the curtain."),
    N_("He lost the match in the last minute."),
    N_("The piano had three broken keys."),
    N_("Bread rises faster in a warm kitchen."),
    N_("The train to the coast was late again."),
    N_("Rain fell on the empty market square."),
    N_("Prices rose for the third month in a row."),
)
"""Sentences to rank: some are close in meaning to the default query, some share its words, some do neither."""
SAME_TAU, SIMILAR_TAU = 0.99, 0.7
"""Smallest values of Kendall's τ for which a ranking is reported as the same, and as similar.

If two of ten sentences exchange their ranks, τ is at most 0.96.
"""
ROW_HEIGHT, AXIS_HEIGHT, NAME_HEIGHT = 40, 60, 27
"""Heights in pixels of a sentence's row, of the horizontal axis, and of a name in the legend on a phone."""
LETTERS = 27
"""Largest number of letters per line of a sentence next to the chart."""
HIGHER = 0.05
"""Smallest rise of the mean similarity of the least similar half of the sentences that is reported."""


def _missing(question: Question) -> str:
    return "" if question.options.encoders else _("No replacement for softmax is chosen yet.")


def _tasks(question: Question) -> tuple[EmbeddingTask, ...]:
    low, high = question.options.encoder_layers
    return embedding.tasks(question.options.query, SENTENCES, question.options.encoders, tuple(range(low, high + 1)))


def _draw(_question: Question, rows: Sequence[EmbeddingRow], key: str) -> None:
    order = np.argsort(ranks(rows[0].before))
    figure = curves(
        lines(rows),
        x_title=_("cosine similarity"),
        y_title="",
        height=ROW_HEIGHT * len(order) + AXIS_HEIGHT + NAME_HEIGHT * (1 + len(rows)),
        y_ticks={-rank: "<br>".join(textwrap.wrap(_(SENTENCES[i]), LETTERS)) for rank, i in enumerate(order, 1)},
    )
    for trace in figure["data"]:
        trace["showlegend"] = True
        trace["cliponaxis"] = False  # On a phone, the axis ends within the outermost points.
    text = _("Points show, for each sentence and variant, the cosine similarity with the query sentence.")
    chart.show(figure, key=f"{key}.chart", name="similarity", alt=text)


def _notes(_question: Question, rows: Sequence[EmbeddingRow]) -> str:
    return paragraph(
        _(
            "Each row shows how similar a sentence is to the query sentence. Rows are sorted by the similarity in the "
            "original model (rings)."
        ),
        _("The rank correlation is Kendall's τ, which is 1 for the same ranking and −1 for the reverse ranking."),
        describe_drifts(rows),
        _("Computed on this machine."),
    )


def describe_rankings(rows: Sequence[EmbeddingRow]) -> Lines:
    """Return the finding about unrelated sentences, explained by each variant's ranking, or else the rankings."""
    same = [row for row in rows if row.tau >= SAME_TAU]
    similar = [row for row in rows if SIMILAR_TAU <= row.tau < SAME_TAU]
    other = [row for row in rows if row not in same + similar]
    texts = (
        (same, N_("does not change with {names}")),
        (similar, N_("changes little with {names} (rank correlation {taus})")),
        (other, N_("changes clearly with {names} (rank correlation {taus})")),
    )
    every = [row.word for row in rows]
    effects = predicates(
        _(
            text,
            names=enumeration(name_in_sentence(row.word, every) for row in group),
            taus=enumeration(number(row.tau, 2) for row in group),
        )
        for group, text in texts
        if group
    )
    if not effects:
        return []
    ranking = _("**The ranking by similarity {effects}.**", effects=effects)
    if unrelated := describe_unrelated(rows):
        return [[Finding(unrelated, ranking.replace("**", ""))]]
    return [[Finding(ranking)]]


def describe_unrelated(rows: Sequence[EmbeddingRow]) -> str:
    """Return the sentence about the variants with which the least similar half becomes clearly more similar."""
    if not rows:
        return ""
    half = np.argsort(rows[0].before)[: len(rows[0].before) // 2]
    before, after = np.mean(np.asarray(rows[0].before)[half]), [np.mean(np.asarray(row.after)[half]) for row in rows]
    names = [name_in_sentence(row.word, [each.word for each in rows]) for row in rows]
    higher = [(name, value) for name, value in zip(names, after, strict=True) if value >= before + HIGHER]
    if not higher:
        return ""
    return _(
        "**With {names}, unrelated sentences come closer to the query sentence** (mean similarity of the less similar "
        "half: {after} instead of {before}).",
        names=enumeration(name for name, _value in higher),
        after=enumeration(formatted(value, ".2f") for _name, value in higher),
        before=formatted(before, ".2f"),
    )


def describe_drifts(rows: Sequence[EmbeddingRow]) -> str:
    """Return the sentence about the mean change (drift) of the sentence embeddings with each variant."""
    every = [row.word for row in rows]
    return _(
        "On average, the sentences' own embeddings drift by {drifts} (one minus the cosine similarity before and "
        "after the replacement).",
        drifts=enumeration(
            _("{drift} with {name}", drift=number(row.drift, 2), name=name_in_sentence(row.word, every)) for row in rows
        ),
    )


def ranks(similarities: Sequence[float]) -> np.ndarray:
    """Return the rank of each sentence, from 1 for the most similar one."""
    result = np.empty(len(similarities), int)
    result[np.argsort(-np.asarray(similarities), kind="stable")] = np.arange(1, 1 + len(similarities))
    return result


def lines(rows: Sequence[EmbeddingRow]) -> list[Curve]:
    """Return each model's points: similarities to the query, one sentence below the other in the original ranking."""
    order = np.argsort(ranks(rows[0].before))
    models = [(_(ORIGINAL), rows[0].before, GREY)]
    coloured = zip(rows, palette.indices([row.word for row in rows]), strict=True)
    models += [(display_name(row.word), row.after, place) for row, place in coloured]
    return [
        Curve(
            name,
            [similarities[i] for i in order],
            [-float(rank) for rank in range(1, 1 + len(order))],
            colour=colour,
            width=0,
            name_at_end=False,  # A line from each name to its point would cross the sentences' rows.
            # Rings around the other points show the original model's points where these would be covered.
            hollow=colour == GREY,
            size=13 if colour == GREY else 9,
            notes=[
                _(
                    "{sentence}<br>similarity {value}, rank {rank}",
                    sentence=_(SENTENCES[i]),
                    value=formatted(similarities[i], ".2f"),
                    rank=rank[i],
                )
                for rank in [ranks(similarities)]
                for i in order
            ],
        )
        for name, similarities, colour in models
    ]


EMBEDDINGS = View(
    experiment="embedding",
    tasks=_tasks,
    missing=_missing,
    describe=lambda question, rows: describe_rankings(rows),
    draw=_draw,
    notes=_notes,
    file="embeddings.csv",
)
