"""The “Attention during training” view of the Learn page: each model's attention matrix at a chosen training step."""

import html
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.picture import data_url
from app.figures.theme import DARK, LIGHT, Colour
from app.words.finding import Finding
from app.words.i18n import N_, _
from attention_core.experiments.learning import LearnRow, example_labels
from attention_core.formatting import percent
from attention_core.learning.hidden_answers import answer_places, answer_share
from attention_core.learning.tasks import task as task_of
from pages.learn import attention_words
from pages.learn.options import LearnOptions
from pages.learn.outcomes import Outcome, outcomes

MAX_LABELLED = 6
"""Largest number of answers in a matrix whose tokens are written at their rows and columns."""


def show(rows: Sequence[LearnRow], key: str) -> None:
    """Draw each variant's matrix on one sequence at the chosen training step and layer."""
    if not (matrices := with_matrices(rows)):
        st.info(_("Press “Train on this server” to see the attention matrices."), icon=":material/grid_on:")
        return
    steps = sorted({each.row.step for each in matrices})
    results = outcomes(matrices)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=420):
            step = LearnOptions.checkpoint.draw_with_options(
                steps, steps[-1], key=f"learn.checkpoint.{key}", widget=st.select_slider
            )
        layers = range(matrices[0].spec.model.layers)
        layer = LearnOptions.layer.draw_with_options(
            layers,
            layers[-1],
            key=f"learn.layer.{key}",
            widget=st.pills,
            width="content",
            format_func=lambda i: str(i + 1),
        )
    current = [
        max((each for each in outcome.rows if each.row.step <= step), key=lambda each: each.row.step)
        for outcome in results
    ]
    seeds = len({each.row.seed for each in rows})
    panels = (_panel(row, outcome, layer, step) for row, outcome in zip(current, results, strict=True))
    has_negative = any((row.matrices[layer] < 0).any() for row in current if row.matrices is not None)
    key_html = _key(matrices[0], step, seeds, has_negative=has_negative)
    task = matrices[0].spec.model.task
    if not task_of(task).vectors:  # Vectors have no symbols.
        symbols = attention_words.SYMBOLS.get(task)
        text = N_("Sequence ({symbols}): {tokens}") if symbols else N_("Sequence: {tokens}")
        tokens = f"`{' '.join(example_labels(matrices[0].spec))}`"
        with st.container(key=f"learn.sequence.{key}"):
            st.markdown(_(text, symbols=_(symbols) if symbols else "", tokens=tokens))
    st.html(f'<div class="checkpoints">{key_html}{"".join(panels)}</div>')


def finding(rows: Sequence[LearnRow], link: Callable[[int], str]) -> Finding | None:
    """Return the sentences about the matrices; None if the answers of the task are not symbols of the sequence.

    ``link`` returns the address of the view of a layer.
    """
    matrices = with_matrices(rows)
    if not matrices or not task_of(matrices[0].spec.model.task).shows_answers:
        return None
    return attention_words.attention_headline(
        outcomes(matrices), min(LearnOptions.layer.value, matrices[0].spec.model.layers - 1), link
    )


def with_matrices(rows: Sequence[LearnRow]) -> list[LearnRow]:
    """Return the measurements with the first seed that include attention matrices."""
    return [each for each in rows if each.matrices is not None and each.row.seed == rows[0].row.seed]


def _key(row: LearnRow, step: int, seeds: int, *, has_negative: bool) -> str:
    """Return the step and the run, and what the axes, frames and colours mean, as HTML.

    Args:
        row: one of the measurements.
        step: the chosen training step.
        seeds: number of training runs, of which the first one is shown.
        has_negative: whether a matrix has negative weights.
    """
    ramps = DARK if st.context.theme.type == "dark" else LIGHT
    run = _("step {step}, run 1 of {n}", step=step, n=seeds) if seeds > 1 else _("step {step}", step=step)
    parts = [run, _("rows: queries, columns: keys")]
    if task_of(row.spec.model.task).causal:
        parts.append(f'<b class="masked"></b>{html.escape(_("masked"))}')
    if task_of(row.spec.model.task).shows_answers:
        parts.append(f"<b></b>{html.escape(_('answer'))}")
    negative = f"{html.escape(_('negative'))} {_scale(ramps.negative, -90)} " if has_negative else ""
    parts.append(f"{negative}0 {_scale(ramps.positive, 90)} {html.escape(_('largest weight of the matrix'))}")
    return f"<p>{''.join(f'<span>{part}</span>' for part in parts)}</p>"


def _scale(ramp: Sequence[Colour], degrees: int) -> str:
    """Return a bar with the colours of a ramp from its first stop on, in a direction of CSS, as HTML."""
    # A matrix colours a weight by the square root of weight / largest weight, so the stops are at squared positions.
    stops = ", ".join(f"rgb{colour} {100 * (i / (len(ramp) - 1)) ** 2:.0f}%" for i, colour in enumerate(ramp))
    return f'<b style="background: linear-gradient({degrees}deg, {stops})"></b>'


def _panel(row: LearnRow, outcome: Outcome, layer: int, step: int) -> str:
    """Return a variant's attention matrix in a layer, with its name, accuracy and largest rise, as HTML.

    The name includes the training step if it is not the chosen ``step``, which this variant has not reached yet.
    """
    assert row.matrices is not None
    alt = _("{name}: attention matrix at step {step}", name=outcome.name, step=row.row.step)
    name = outcome.name if row.row.step == step else f"{outcome.name} ({_('step {step}', step=row.row.step)})"
    values = {"name": name, "share": percent(row.row.accuracy)}
    caption, frames = _("{name}: {share} correct", **values), ""
    if task_of(row.spec.model.task).shows_answers:
        weight = answer_share(row.spec, row.matrices[layer])
        caption = attention_words.panel_caption(weight, **values)
        frames = _frames(answer_places(row.spec), example_labels(row.spec))
    rise = ""
    if text := attention_words.rise_text(outcome):
        rise = f"<br>{html.escape(text)}"
    matrix = row.matrices[layer].astype("float32")
    n, causal = len(matrix), task_of(row.spec.model.task).causal
    mask = ac.from_word(row.row.variant).mask(n, causal=causal)
    allowed = np.tri(n, k=0 if causal else n, dtype=bool) if mask is None else mask.numpy()
    picture = data_url(np.where(allowed, matrix, np.nan), dark=st.context.theme.type == "dark", hides_masked=True)
    return (
        f'<figure><div><img src="{picture}" alt="{html.escape(alt)}">{frames}</div>'
        f"<figcaption>{html.escape(caption)}{rise}</figcaption></figure>"
    )


def _frames(places: Sequence[tuple[int, int]], tokens: Sequence[str]) -> str:
    """Return a frame around each answer of a causal matrix, and the tokens of their rows and columns, as HTML.

    An answer has the place (row, column). The tokens are written above their columns and, in their rows, beyond the
    diagonal, where the matrix is empty. They are left out if there are many answers.
    """
    n = len(tokens)
    frames = [
        f'<i style="left:{key / n:.2%};top:{query / n:.2%};width:{1 / n:.2%};height:{1 / n:.2%}"></i>'
        for query, key in places
    ]
    ends = [end for query, key in places for end in ((query, query + 1.5, query + 0.5), (key, key, -0.7))]
    labels = [
        f'<small style="left:{left / n:.2%};top:{top / n:.2%}">{html.escape(tokens[token])}</small>'
        for token, left, top in ends
    ]
    return "".join(frames + labels * (len(places) <= MAX_LABELLED))
