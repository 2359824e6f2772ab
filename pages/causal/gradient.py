"""The Training chapter of the Causal page: the memory that three algorithms need to compute the gradient."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.jobs import runs
from app.ui.input_panel import ChosenInput
from app.words.finding import Finding
from app.words.i18n import _, _n, escape_markdown, paragraph
from app.words.labels import sentence_name
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import (
    COMPARED_TOKENS,
    STATES,
    SUMS,
    BytesRow,
    BytesTask,
    DifferenceRow,
    DifferenceTask,
)
from attention_core.experiments.causal_modes import MATRIX
from attention_core.formatting import MIB, at_most, number
from pages.causal.cost_chart import HEIGHT, over_length, show_costs
from pages.causal.shared import with_settings

MAX_REPORTED_LENGTH = 512
"""Largest length, in tokens, for the sentences on gradients; the longest counted length up to this is used."""


def show(chosen: ChosenInput, headline: DeltaGenerator) -> list[BytesRow | DifferenceRow]:
    """Count the memory of the gradient of linear attention by three algorithms, and draw it."""
    [attention] = with_settings([ac.variant("linear")])
    d, d_v = chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = causal_gradient.tasks(chosen.source, d=d, d_v=d_v, head=chosen.head, word=attention.word)
    st.markdown("## " + _("Gradient memory of {name} at head size {d}", name=_(attention.title), d=d), anchors=False)

    def draw(rows: list[BytesRow | DifferenceRow], key: str) -> None:
        if counted := [row for row in rows if isinstance(row, BytesRow)]:
            show_costs(over_length(counted, "peak_bytes", MIB), _("memory without q, k, v (MiB)"), f"{key}.gradient")

    def describe(rows: list[BytesRow | DifferenceRow]) -> Finding:
        return gradient_finding(rows, sentence_name(attention), d, chosen.qkv.n)

    rows = runs.run_immediately(
        "causal_gradient",
        tasks,
        draw,
        key="causal.gradient",
        effort=_effort,
        describe=lambda rows: describe(rows).text,
        container=headline,
        height=HEIGHT,
    )
    st.markdown(describe(rows).explanation)
    return rows


def _effort(task: BytesTask | DifferenceTask) -> float:
    return 100.0 + (task.n * task.d**2 / 5e3 if isinstance(task, BytesTask) else 0.0)


def gradient_finding(rows: Sequence[BytesRow | DifferenceRow], name: str, d: int, n: int) -> Finding:
    """Return the memory of the algorithms at one length, and the largest difference of the gradients, if known.

    Only differences in float32 are reported. They are measured on the first tokens of an input of ``n`` tokens.
    """
    single = max(
        (row.difference for row in rows if isinstance(row, DifferenceRow) and row.dtype == "float32"), default=None
    )
    agreement = (
        _n(
            "On the input's first token, the gradients differ by at most {most} times their largest entry.",
            "On the input's first {n} tokens, the gradients differ by at most {most} times their largest entry.",
            n=min(n, COMPARED_TOKENS),
            most=at_most(single),
        )
        if single is not None
        else ""
    )
    counted = [row for row in rows if isinstance(row, BytesRow)]
    length = max((row.n for row in counted if row.algorithm == MATRIX and row.n <= MAX_REPORTED_LENGTH), default=None)
    if length is None:
        return Finding(agreement)
    sizes = {row.algorithm: row.peak_bytes for row in counted if row.n == length}
    return Finding(
        _(
            "**To train {name}, the n × n matrix takes {ratio} times as much memory as chunks of tokens ({n:,} tokens, "
            "head size {d}). Storing the state after every token takes {states} times as much.**",
            name=escape_markdown(name),
            ratio=number(sizes[MATRIX] / sizes[SUMS], 2),
            states=number(sizes[STATES] / sizes[SUMS], 2),
            n=length,
            d=d,
        ),
        paragraph(
            _(
                "In chunks, the forward and the backward pass each keep one state. Without chunks, PyTorch's autograd "
                "stores the state after every token or, with the explicit matrix, n × n weights."
            ),
            _("Memory is counted for one head on random inputs, and includes the outputs, which grow with n."),
            agreement,
        ),
    )
