"""The pinned (chosen) query on the Matrices page: its weights in each variant, as coloured text and as bars."""

import streamlit as st

from app.figures.bars import row_multiples
from app.matrix_board import row_strips
from app.state.session import REFERENCE
from app.ui import chart
from app.words.i18n import _, escape_markdown, paragraph, quote
from app.words.labels import reference_name, token_options
from attention_core.analysis.matrix.informative_query import heaviest_keys, most_changed_keys
from attention_core.attention import Attention
from attention_core.inputs.source import TextSource
from pages.matrices.comparison import BOARD, Comparison
from pages.matrices.options import MatricesOptions
from pages.matrices.words import bars_title, largest_changes, largest_weights

MAX_CHANGES = 2
"""Maximum keys named per variant with the largest losses, and with the largest gains."""
MAX_KEYS = 2
"""Maximum keys named per variant with the largest weights, which fit in a quarter of a projector's line."""
PICKER_KEY = "row.pinned"


def show(comparison: Comparison) -> None:
    """Draw the choice of the query, the beginning of the text, and the query's row in each variant."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="controls.row"):
        repeated = next(
            (word for word, name in zip(comparison.words, comparison.labels, strict=True) if name == f"{word} (2)"),
            None,
        )
        help_text = paragraph(
            _("Point at a key without a label to see its token."),
            _("“{token} (2)” is the second “{token}” in the text.", token=escape_markdown(repeated))
            if repeated
            else "",
        )
        st.markdown(f"**{_('Query')}**", width="content", help=help_text)
        st.session_state[PICKER_KEY] = comparison.row
        st.selectbox(
            _(MatricesOptions.row.title),
            key=PICKER_KEY,
            index=None,
            placeholder=_("Choose a query"),
            on_change=_set_row,
            label_visibility="collapsed",
            width=240,
            **token_options(comparison.labels),
        )
        if isinstance(source := comparison.chosen.source, TextSource):
            with st.container(key="matrices.text"):
                st.caption(quote(escape_markdown(source.text)))
    MatricesOptions.coloured.restrict_to(comparison.arrays)
    row_strips(
        {attention.key: note(comparison, attention) for attention in comparison.visible},
        comparison.key_words,
        joined=comparison.joined,
        queries=comparison.words if comparison.chosen.qkv.crosses else None,
        key="matrices.strips",
        board=BOARD,
        pinned=comparison.row,
        unfolded=MatricesOptions.coloured.value,
        on_unfold=MatricesOptions.coloured.set,
    )


def note(comparison: Comparison, attention: Attention) -> str:
    """Return one variant's note: its heaviest keys, or the largest changes if the page shows differences."""
    if comparison.row is None:
        return ""
    matrix = comparison.matrices[attention]
    if not comparison.difference or attention.word == REFERENCE:
        return largest_weights(heaviest_keys(matrix.weights[comparison.row], MAX_KEYS), comparison.key_labels)
    losses, gains = most_changed_keys(matrix.difference[comparison.row], MAX_CHANGES)
    return largest_changes(losses, gains, comparison.key_labels, reference_name(attention))


def show_bars(comparison: Comparison) -> None:
    """Draw the pinned row of each variant as a bar chart, one below the other."""
    if comparison.row is None:
        st.info(
            _("Click a word in the text, or a cell in a matrix, to draw the row of its query as bars."),
            icon=":material/touch_app:",
        )
        return
    rows = {comparison.names[key]: values[comparison.row] for key, values in comparison.arrays.items()}
    figure = row_multiples(
        rows,
        comparison.key_labels,
        key_title=_("key"),
        value_title=_("difference") if comparison.difference else _("weight"),
        masked=_("masked"),
        percent=True,
    )
    st.markdown(
        bars_title(
            comparison.row,
            escape_markdown(comparison.labels[comparison.row]),
            drawn=len(figure["data"][0]["x"]),
            total=len(comparison.key_labels),
            difference=comparison.difference,
            has_negative=any((bars["y"] < 0).any() for bars in figure["data"] if bars["type"] == "bar"),
        )
    )
    chart.show(
        figure,
        key="row.bars",
        name="pinned-row",
        alt=_("One bar chart per variant: {unit} of query {row} on each key", unit=comparison.unit, row=comparison.row),
    )


def _set_row() -> None:
    MatricesOptions.row.set(st.session_state[PICKER_KEY])
