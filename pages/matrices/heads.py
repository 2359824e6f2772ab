"""The head explorer of the Matrices page: softmax's matrix in every layer and head, and scores that describe it."""

import streamlit as st

from app.jobs import cached
from app.matrix_board import HeadLabel, thumbnail_board
from app.state import url
from app.state.session import SharedOptions
from app.ui import export, input_panel
from app.words.i18n import _, escape_markdown
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
MAX_PICTURES = 60
"""Maximum pictures if heads are ordered by a score; the file lists every head."""


SCROLL_KEY = "heads.reveal"
"""Session state key that is set if the page scrolls to the pictures in its next run."""


def open_all() -> None:
    """Open this view and scroll to it."""
    MatricesOptions.below.set("heads")
    st.session_state[SCROLL_KEY] = True


def show(comparison: Comparison) -> None:
    """Draw the choice of the order, the pictures, and the download of their scores; a click on a picture selects it."""
    source = comparison.chosen.source
    model, causal, special = source.at_layer(0), SharedOptions.causal.value, SharedOptions.special.value
    pictures = cached.head_miniatures(model, causal, special, MAX_CELLS)
    scores = cached.head_scores(model, causal, special)
    crosses = comparison.chosen.qkv.crosses
    order = "layer" if crosses else MatricesOptions.head_order.draw()
    ranking = scores if order == "layer" else ranked(scores, order)
    if not crosses:
        first = escape_markdown(comparison.words[0])
        st.markdown(head_findings(scores, first) if order == "layer" else top_head(ranking, order, first))
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
    columns = HeadScores.columns()
    export.download(
        _("Scores (CSV)"),
        lambda: export.to_csv(
            (_("layer"), _("head"), *(_(column.label) for column in columns.values())),
            ((each.layer, each.head, *(getattr(each, name) for name in columns)) for each in ranking),
        ),
        "head-scores.csv",
    )
