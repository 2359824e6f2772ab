"""The Copying view: the loss of each repeated token, when a sequence of random tokens is read twice."""

from collections.abc import Sequence
from statistics import mean

import streamlit as st

from app.figures.curves import Curve, curves, guide
from app.figures.theme import GREY
from app.ui import chart, palette
from app.ui.export import formula_expander
from app.words.i18n import _
from attention_core.experiments import swap
from attention_core.experiments.swap import CopyRow, SwapRow
from attention_core.variant import SOFTMAX
from pages.model import reading, sweep
from pages.model.options import Question, called


def show(question: Question) -> None:
    """Run the copy test and read the text as well, because neither copying nor perplexity represents the other."""

    def draw(rows: list[SwapRow], key: str) -> None:
        reading.tell(question, rows)
        lines = [line for line in (_line(rows, *each) for each in _readers(question)) if line]
        first = [row.first for row in rows if isinstance(row, CopyRow) and row.layers == ()]
        if lines and first:
            ends = [1.0, float(swap.PERIOD - 1)]
            lines.append(guide(_("said first, as it is"), ends, [mean(first)] * 2))
        figure = curves(
            lines,
            x_title=_("tokens since the repetition began"),
            y_title=_("loss (nats a token)"),
            height=430,
            top=None,
        )
        message = _("Lines: the loss of each token that is said again, of the model as it is and of each variant")
        chart.show(figure, key=f"{key}.chart", name="copying", alt=message)
        st.caption(
            _(
                "{period} random common tokens, repeated once; the mean of {n} draws, bands from the lowest to the "
                "highest. A model that finds what followed a token the first time predicts its repetition at a low "
                "loss. The first occurrence is {period} tokens back, farther than a shorter window reaches in one "
                "layer.",
                period=swap.PERIOD,
                n=max(row.seed for row in rows if isinstance(row, CopyRow)) + 1 if first else 0,
            )
        )

    rows = sweep.at_once(reading.tasks(question), draw, key="model.copying")
    reading.take_away(rows)
    formula_expander(
        _("What the numbers are"),
        r"\text{perplexity} = \exp\Big(\tfrac{1}{n-1}\sum_{i>1} -\log p(x_i \mid x_{<i})\Big)",
        _(
            "Copying is the same mean of $-\\log p$, in nats, over the tokens that are said again, without the first "
            "of them. A guess among all 49,152 tokens costs 10.8 nats; who is sure of another pays more."
        ),
        key="model.method",
    )


def _readers(question: Question) -> list[tuple[str, str, tuple[int, ...], int]]:
    """Return the name, word, layers and colour of every line."""
    placed = zip(question.words, palette.places(question.words), strict=True)
    changed = [(called(word), word, question.layers, place) for word, place in placed]
    return [(_("The model as it is"), SOFTMAX, (), GREY), *changed]


def _line(rows: Sequence[SwapRow], name: str, word: str, layers: tuple[int, ...], colour: int) -> Curve | None:
    """Return the curve of the mean loss over the finished draws, with a band for several draws; None without draws."""
    own = [row for row in rows if isinstance(row, CopyRow) and (row.word, row.layers) == (word, layers) and row.losses]
    if not own:
        return None
    places = list(zip(*(row.losses for row in own), strict=True))
    several = len(own) > 1
    return Curve(
        name,
        [float(i) for i in range(1, 1 + len(places))],
        [mean(each) for each in places],
        low=[min(each) for each in places] if several else None,
        high=[max(each) for each in places] if several else None,
        colour=colour,
        marks=False,
    )
