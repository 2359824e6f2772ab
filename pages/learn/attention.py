"""The view of the attention matrices at a training step."""

import html
from collections.abc import Sequence

import streamlit as st

from app.figures.picture import data_url
from app.figures.theme import style
from app.words.i18n import _
from attention_core.experiments.learning import LearnRow, example_labels
from attention_core.formatting import percent
from attention_core.learning.hidden_answers import answer_weight
from pages.learn import words
from pages.learn.options import LearnOptions
from pages.learn.outcomes import Outcome, outcomes


def show(rows: Sequence[LearnRow], key: str) -> None:
    """Draw each variant's matrix on one sequence at the chosen training step and layer."""
    first = [each for each in rows if each.matrices is not None and each.row.seed == rows[0].row.seed]
    if not first:
        st.info(_("Press “Train on this machine” to see the attention matrices."), icon=":material/grid_on:")
        return
    steps = sorted({each.row.step for each in first})
    found = outcomes(first)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=420, gap=None):
            step = LearnOptions.checkpoint.draw_with_options(
                steps, steps[-1], key=f"learn.checkpoint.{key}", widget=st.select_slider
            )
            st.html(_marks(found, steps))
        layers = range(first[0].spec.model.layers)
        layer = LearnOptions.layer.draw_with_options(
            layers, layers[-1], key=f"learn.layer.{key}", widget=st.pills, width="content"
        )
    panels, on_stripe = [], {}
    for outcome in found:
        own = max((each for each in outcome.rows if each.row.step <= step), key=lambda each: each.row.step)
        panels.append(_panel(own, outcome.name, layer))
        if own.matrices is not None and own.spec.model.task == "induction":
            on_stripe[outcome.name] = answer_weight(own.spec, own.matrices[layer])
    st.html(f'<div class="checkpoints">{"".join(panels)}</div>')
    if on_stripe:
        st.markdown(words.stripe(on_stripe))
    labels = " ".join(example_labels(first[0].spec))
    st.caption(_("Rows are queries and columns are keys of this sequence: {tokens}", tokens=f"`{labels}`"))


def _marks(found: Sequence[Outcome], steps: Sequence[int]) -> str:
    """Return a row of triangles below the slider, one at the end of each variant's largest rise, as HTML."""
    marks = []
    for outcome in found:
        if outcome.jump is None:
            continue
        text = _(
            "{name}: largest rise from step {low} to {high}",
            name=outcome.name,
            low=outcome.jump[0],
            high=outcome.jump[1],
        )
        place = steps.index(outcome.jump[1]) / max(1, len(steps) - 1)
        marks.append(
            f'<span style="left:{place:.2%};color:{style(outcome.colour).colour}" title="{html.escape(text)}">▲</span>'
        )
    return f'<div class="rises" aria-hidden="true">{"".join(marks)}</div>'


def _panel(found: LearnRow, name: str, layer: int) -> str:
    """Return a variant's matrix with its name and accuracy as HTML."""
    assert found.matrices is not None
    share = percent(found.row.accuracy)
    alt = _("{name}: attention matrix at step {step}", name=name, step=found.row.step)
    caption = _("{name}: step {step}, {share} correct", name=name, step=found.row.step, share=share)
    picture = data_url(found.matrices[layer].astype("float32"), dark=st.context.theme.type == "dark")
    return (
        f'<figure><img src="{picture}" alt="{html.escape(alt)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )
