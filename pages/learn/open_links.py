"""Links of the Learn page that open a model trained there as the input of another page."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

import attention_core as ac
from app.page import discover
from app.state.session import REFERENCE
from app.ui import navigation
from app.ui.lazy import lazy_popover
from app.ui.sources import trained_form
from app.words.i18n import _
from attention_core.experiments.learning import LearnRow
from attention_core.inputs import TrainedSource
from attention_core.learning.tasks import digits
from attention_core.learning.tasks import task as task_of
from attention_core.learning.train import TrainSpec
from pages.learn.outcomes import Outcome, outcomes


def show(rows: Sequence[LearnRow]) -> None:
    """Cache the weights of the trained models, and draw a menu of links to the Matrices page.

    Models of the digits task also have a menu of links to the Picture page.
    """
    last_rows = [(outcome, last_row(outcome.rows)) for outcome in outcomes(rows)]
    trained = [(outcome, row) for outcome, row in last_rows if row.row.step]
    if not trained:
        return
    for _outcome, row in trained:
        trained_form.cache_weights(row)
    pages = {"matrices": _("Open in Matrices")}
    if trained[0][1].spec.model.task == digits.TASK.key:
        pages["picture"] = _("See the attention on the Picture page")
    with st.container(horizontal=True):
        for page, label in pages.items():
            menu = partial(_links, page, trained)
            lazy_popover(label, menu, key=f"learn.open.{page}", icon=discover()[page].icon, type="tertiary")


def _links(page: str, trained: Sequence[tuple[Outcome, LearnRow]]) -> None:
    for outcome, row in trained:
        _link(page, outcome, replace(row.spec, steps=row.row.step))


def _link(page: str, outcome: Outcome, spec: TrainSpec) -> None:
    """Draw a link to a page with one trained model as its input."""
    navigation.link(
        page,
        outcome.name,
        input=TrainedSource.key,
        trained=spec,
        sequence=0,
        layer=spec.model.layers - 1,
        variants=tuple({word: ac.from_word(word) for word in (REFERENCE, outcome.word)}.values()),
        causal=task_of(spec.model.task).causal,
    )


def last_row(rows: Sequence[LearnRow]) -> LearnRow:
    """Return the last measurement of the first seed during training."""
    first = min(each.spec.seed for each in rows)
    return max((each for each in rows if each.spec.seed == first), key=lambda each: each.row.step)
