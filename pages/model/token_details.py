"""Details on the Model page about single tokens of the text: the largest increases in loss, and predictions."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.bars import MAX_KEYS, row_multiples
from app.jobs import dispatch, runs
from app.ui import chart
from app.words.i18n import _, escape_markdown, paragraph, sentence
from app.words.labels import in_words, spinner
from attention_core.experiments import next_token
from attention_core.experiments.next_token import NextTokenRow
from attention_core.experiments.swap import ReadingRow
from attention_core.formatting import formatted, percent
from attention_core.inputs.labels import number_repeats, readable
from pages.model.options import ORIGINAL, Question, display_name, short_name

MAX_LISTED = 8
"""Number of tokens in the list of the largest increases in loss."""
MIN_PROBABILITY = 1e-6
"""Smaller probabilities are shown as "under 0.0001%"."""
MAX_UNCHANGED = 1e-6
"""If a smaller share of the attention weight moves, two rows are equal except for rounding."""
MIN_INCREASE = 0.05
"""Smallest increase of a token's loss in nats that is listed; a smaller one rounds to zero."""
MIN_GAIN = 0.005
"""Smallest gain of a token, as a share of the weight, that is named."""
MIN_NAMED = 0.05
"""Smallest share of the weight with which a key is named below its bars. More names would not fit."""


def show(question: Question, original: ReadingRow, changed: ReadingRow) -> None:
    """Draw the selected token's details; if none is selected, a list of the largest increases in loss."""
    # Until the predictions of a newly selected token are computed, the earlier details stay in this container.
    details, token = st.container(), question.options.token
    if token is not None and 0 < token < original.tokens:
        _predictions(question, changed.word, token, details)
    else:
        with details:
            _increases(original, changed, short_name(changed.word, question.words))


def _increases(original: ReadingRow, changed: ReadingRow, name: str) -> None:
    st.markdown(_("Largest increases in loss (nats)"))
    if not (tokens := increases(original, changed, name)):
        st.caption(_("No token's loss is at least {least} nats higher than in the original model.", least=MIN_INCREASE))
        return
    with st.container(key="model.increases"):
        st.table(tokens, border="horizontal", hide_index=True)


def increases(original: ReadingRow, changed: ReadingRow, name: str) -> list[dict[str, object]]:
    """Return table rows of the tokens whose loss increases most, with the losses before and after, and the increase."""
    differences, labels = np.subtract(changed.losses, original.losses), number_repeats(original.labels)
    return [
        {
            _("Token"): escape_markdown(labels[i + 1]),
            _("Original"): formatted(original.losses[i], ".1f"),
            name: formatted(changed.losses[i], ".1f"),
            _("Increase"): formatted(differences[i], "+.1f"),
        }
        for i in np.argsort(-differences, kind="stable")[:MAX_LISTED].tolist()
        if differences[i] >= MIN_INCREASE
    ]


def _predictions(question: Question, word: str, token: int, details: DeltaGenerator) -> None:
    """Compute and draw in ``details`` how both models predict a token, and the attention row that changes most."""
    name, placeholder = display_name(word), st.empty()
    [task] = next_token.tasks(question.text, word, question.layers, token)
    try:
        with spinner(name):
            [row] = dispatch.rows(
                "next_token",
                task,
                runs.on_status_change(lambda standing: placeholder.caption(runs.queue_text(standing))),
            )
    except ac.LabError as error:
        st.info(escape_markdown(sentence(error)))
        return
    placeholder.empty()
    with details:
        _draw_predictions(row, name)


def _draw_predictions(row: NextTokenRow, name: str) -> None:
    st.markdown(describe_token(row, in_words(name)))
    st.table(
        {_("Original"): prediction_texts(row.before), name: prediction_texts(row.after)},
        border="horizontal",
        hide_index=True,
    )
    rows = {_(ORIGINAL): np.array(row.row_before), name: np.array(row.row_after)}
    figure = row_multiples(
        rows, row.context, key_title=_("key"), value_title=_("weight"), percent=True, min_named=MIN_NAMED
    )
    message = _(
        "Bars: the attention weights of the token before the predicted one (the query) in layer {layer}, head {head}",
        layer=row.layer,
        head=row.head,
    )
    chart.show(figure, key="model.row", name="attention-row", alt=message)
    st.caption(
        paragraph(
            _("Only the {n} keys with the largest weights have bars.", n=MAX_KEYS)
            if np.count_nonzero(np.add(row.row_before, row.row_after)) > MAX_KEYS
            else "",
            _("Keys with at least {share} of the weight in either model are named.", share=percent(MIN_NAMED)),
            _("Click the selected token again to see the largest increases in loss."),
        )
    )


def prediction_texts(predictions: Sequence[tuple[str, float]]) -> list[str]:
    """Return one text per predicted token, with its probability, as Markdown."""
    return [f"{escape_markdown(readable(token))} · {percent(probability)}" for token, probability in predictions]


def format_probability(probability: float) -> str:
    """Return a probability as a percentage without powers of ten."""
    if probability < MIN_PROBABILITY:
        return _("under 0.0001%")
    return percent(probability) if probability >= 1e-4 else f"{100 * probability:.4f}%"


def describe_token(row: NextTokenRow, name: str) -> str:
    """Return the sentences about how a token's probability changed, and where the attention weights changed most."""
    gains = np.subtract(row.row_after, row.row_before)
    values = {
        "target": escape_markdown(row.context[int(gains.argmax())]),
        "gain": percent(float(gains.max())),
        "token": escape_markdown(row.label),
        "before": format_probability(row.probabilities[0]),
        "after": format_probability(row.probabilities[1]),
        "name": name,
        "last": escape_markdown(row.context[-1]),
        "layer": row.layer,
        "head": row.head,
        "moved": percent(row.moved_weight),
    }
    return paragraph(
        _(
            "The predicted probability of “{token}” is {before} in the original model and {after} with **{name}**.",
            **values,
        ),
        _("The token before the predicted one is “{last}”. Its attention rows are the same in both models.", **values)
        if row.moved_weight < MAX_UNCHANGED
        else _(
            "The token before the predicted one is “{last}”. Its attention row changes most in layer {layer}, head "
            "{head}. There, {moved} of the row's weight moves to other tokens.",
            **values,
        ),
        _("“{target}” gains most ({gain}).", **values)
        if row.moved_weight >= MAX_UNCHANGED and gains.max() >= MIN_GAIN
        else "",
    )
