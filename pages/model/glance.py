"""The details of one selected token: its probabilities in both models, and the attention row that changed most."""

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.bars import row_multiples
from app.jobs import dispatch, runs
from app.ui import chart
from app.words.i18n import _, escape_markdown, sentence
from app.words.labels import computing
from attention_core.experiments import glance
from attention_core.experiments.glance import NextTokenRow
from attention_core.formatting import percent
from attention_core.inputs.labels import readable
from pages.model.options import Question, called


def show(question: Question, word: str, token: int) -> None:
    """Predict the token with the original and the changed model, and draw both predictions and the changed row."""
    name = called(word)
    place = st.empty()
    [task] = glance.tasks(question.text, word, question.layers, token)
    try:
        with computing(name):
            [row] = dispatch.rows(
                "glance", task, runs.on_status_change(lambda standing: place.caption(runs.queue_text(standing)))
            )
    except ac.LabError as error:
        st.info(escape_markdown(sentence(error)))
        return
    place.empty()
    st.markdown(in_words(row, name))
    left, right = st.columns(2, gap="large")
    with left:
        st.dataframe(
            {
                _("As it is"): [shown(message) for message, chance in row.before],
                _("chance"): [chance for message, chance in row.before],
                _("Changed"): [shown(message) for message, chance in row.after],
                _("its chance"): [chance for message, chance in row.after],
            },
            hide_index=True,
            column_config={
                _("chance"): st.column_config.NumberColumn(format="percent"),
                _("its chance"): st.column_config.NumberColumn(format="percent"),
            },
        )
    with right:
        rows = {_("As it is"): np.array(row.row_before), name: np.array(row.row_after)}
        figure = row_multiples(rows, row.context, key_title=_("looked at"), value_title=_("weight"), most=24)
        message = _(
            "Bars: where the token before it looks in layer {layer}, head {head}.", layer=row.layer, head=row.head
        )
        chart.show(figure, key="model.row", name="attention-row", alt=message)


def shown(token: str) -> str:
    """Return a token in readable form."""
    return readable(token)


def in_words(row: NextTokenRow, name: str) -> str:
    """Return how a token's probability changed, and in which head the previous token's attention row changed most."""
    values = {
        "token": escape_markdown(row.label),
        "before": percent(row.chances[0]),
        "after": percent(row.chances[1]),
        "name": name,
        "last": escape_markdown(row.context[-1]),
        "layer": row.layer,
        "head": row.head,
        "moved": percent(row.moved),
    }
    return _(
        "“{token}” had a chance of {before} and has {after} with {name}. Of the layers replaced, the row of “{last}” "
        "changed most in layer {layer}, head {head}: {moved} of its weight lies elsewhere.",
        **values,
    )
