"""The pinned query: the text, coloured by one query's attention weights in each variant, and the largest changes."""

import streamlit as st

from app.figures.bars import row_multiples
from app.matrix_board import Strip, row_strips
from app.state.session import REFERENCE
from app.ui import chart
from app.words.i18n import _, escape_markdown
from app.words.labels import reference_name, tokens
from attention_core.analysis.matrix.telling_row import heaviest, most_changed
from attention_core.variant import Attention
from pages.matrices.comparison import BOARD, Found
from pages.matrices.options import MatricesOptions
from pages.matrices.words import attends_to, changed

MOST = 2
"""Maximum keys named per variant with the largest losses, and with the largest gains."""
PICKER = "row.pinned"


def show(found: Found) -> None:
    """Draw the choice of the query, and its row in each variant."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="controls.row"):
        again = next(
            (word for word, name in zip(found.words, found.labels, strict=True) if name == f"{word} (2)"), None
        )
        counted = again and _(
            "A number in brackets counts repeated tokens: “{token} (2)” is the second “{token}”.",
            token=escape_markdown(again),
        )
        st.markdown(f"**{_('Query')}**", width="content", help=counted)
        st.session_state[PICKER] = found.row
        st.selectbox(
            _(MatricesOptions.row.title),
            key=PICKER,
            index=None,
            placeholder=_("Choose a query"),
            on_change=_take,
            label_visibility="collapsed",
            width=240,
            **tokens(found.labels),
        )
        if found.row is not None and not found.chosen.qkv.crosses:
            st.caption(_("Click a word in the text to make it the query and see its weights."), width="content")
    MatricesOptions.coloured.restrict_to(found.shown)
    row_strips(
        [Strip(key=attention.key, note=note(found, attention)) for attention in found.drawn],
        found.key_words,
        joined=found.joined,
        queries=found.words if found.chosen.qkv.crosses else None,
        key="matrices.strips",
        board=BOARD,
        pinned=found.row,
        whole=MatricesOptions.coloured.value,
        on_unfold=_unfold,
    )


def note(found: Found, attention: Attention) -> str:
    """Return one variant's note: its heaviest keys, or the largest changes if the page shows differences."""
    if found.row is None:
        return ""
    matrix = found.matrices[attention]
    if not found.difference or attention.word == REFERENCE:
        return attends_to(heaviest(matrix.weights[found.row], MOST + 1), found.key_labels)
    lost, gained = most_changed(matrix.difference[found.row], MOST)
    return changed(lost, gained, found.key_labels, reference_name(attention))


def show_bars(found: Found) -> None:
    """Draw the pinned row of each variant as a bar chart, one below the other."""
    if found.row is None:
        st.info(
            _("Click a word in the text, or a cell in a matrix, to draw the row of its query as bars."),
            icon=":material/touch_app:",
        )
        return
    chart.choose_format()
    chart.show(
        row_multiples(
            {found.names[key]: values[found.row] for key, values in found.shown.items()},
            found.key_labels,
            key_title=_("key"),
            value_title=found.unit,
        ),
        key="row.bars",
        name="pinned-row",
        alt=_("One bar chart per variant: {unit} of query {row} on each key", unit=found.unit, row=found.row),
    )


def _take() -> None:
    MatricesOptions.row.set(st.session_state[PICKER])


def _unfold(variant: str | None) -> None:
    MatricesOptions.coloured.set(variant)
