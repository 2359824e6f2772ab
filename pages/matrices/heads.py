"""The head explorer of the Matrices page: softmax's matrix in every layer and head, and scores that describe it."""

import math

import streamlit as st

from app.jobs import cached
from app.matrix_board import HeadLabel, thumbnail_board
from app.state import url
from app.state.session import SharedOptions
from app.ui import input_panel
from app.words.i18n import _, paragraph
from attention_core.analysis.matrix.head_scores import HeadScores, ranked
from attention_core.formatting import format_readable
from pages.matrices.comparison import Comparison
from pages.matrices.options import MatricesOptions
from pages.matrices.words import head_description, head_findings, top_head

MAX_CELLS = 48
"""Maximum rows and columns of a picture."""
MAX_SIDE = 112
"""Maximum side of a picture, in pixels."""
MAX_HEIGHT = 1400
"""Maximum height of all layers' pictures together, in pixels."""
TABLE_HEIGHT, SHOWN_ROWS = 320, 8
"""Height of a table with more rows than ``SHOWN_ROWS``, in pixels."""
MAX_PICTURES = 60
"""Maximum pictures if heads are ordered by a score; the table lists every head."""


SCROLL_KEY = "heads.reveal"
"""Session state key that is set if the page scrolls to the pictures in its next run."""


def open_all() -> None:
    """Open this view and scroll to it."""
    MatricesOptions.below.set("heads")
    st.session_state[SCROLL_KEY] = True


def show(comparison: Comparison) -> None:
    """Draw the choice of the order, the pictures, and the table of scores; a click on a picture selects its head."""
    source = comparison.chosen.source
    model, causal, special = source.at_layer(0), SharedOptions.causal.value, SharedOptions.special.value
    pictures = cached.head_miniatures(model, causal, special, MAX_CELLS)
    scores = cached.head_scores(model, causal, special)
    crosses = comparison.chosen.qkv.crosses
    order = "layer" if crosses else MatricesOptions.head_order.draw()
    ranking = scores if order == "layer" else ranked(scores, order)
    if text := "" if crosses else head_findings(scores) if order == "layer" else top_head(ranking, order):
        st.markdown(text)
    thumbnail_board(
        pictures,
        selected=(SharedOptions.layer.value if source.layer_count > 1 else 0, SharedOptions.head.value),
        key="heads.large",
        on_choose=input_panel.select_head,
        height=MAX_HEIGHT,
        max_size=MAX_SIDE,
        heads=[
            HeadLabel(
                each.layer,
                each.head,
                note=""
                if order == "layer"
                else _(
                    "L{layer} H{head} · {score}",
                    layer=each.layer,
                    head=each.head,
                    score=format_readable(getattr(each, order), 2),
                ),
                description="" if crosses else head_description(each),
            )
            for each in (ranking if order == "layer" else ranking[:MAX_PICTURES])
        ],
        in_order=order != "layer",
        reveal=st.session_state.pop(SCROLL_KEY, False) or url.is_new_link(),
    )
    st.caption(
        _(
            "Softmax weights on this input, one picture per head. Each picture has its own colour scale. "
            "Click a picture to open its head."
        )
    )
    if crosses:
        return
    has_induction = not all(math.isnan(each.induction) for each in scores)
    columns = {name: column for name, column in HeadScores.columns().items() if name != "induction" or has_induction}
    st.dataframe(
        [
            {_("layer"): each.layer, _("head"): each.head}
            | {_(column.label): getattr(each, name) for name, column in columns.items()}
            for each in ranking
        ],
        hide_index=True,
        height=TABLE_HEIGHT if len(ranking) > SHOWN_ROWS else "content",
        column_config={
            _(column.label): st.column_config.NumberColumn(format=column.format) for column in columns.values()
        },
    )
    scroll = _("{n} heads. Scroll in the table to see them all.", n=len(ranking))
    notes = [scroll] if len(ranking) > SHOWN_ROWS else []
    notes += [
        _("All scores are averages over queries."),
        _(
            "Induction is the weight that a repeated token gives to the tokens that followed its earlier occurrences "
            "(Olsson et al. 2022)."
        )
        if has_induction
        else _("Induction is left out, because no token repeats with another token in between."),
        _(
            "“Previous token” is the weight that queries give to the token before them, and “first-token sink” the "
            "weight that they give to the first token. Both exclude the first query."
        ),
        _("Mean distance is the average number of tokens between query and key, weighted by the attention weights."),
    ]
    st.caption(paragraph(*notes))
