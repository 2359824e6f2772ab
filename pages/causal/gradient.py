"""The Training chapter of the Causal page: the memory of three algorithms for the gradient of linear attention."""

from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app.jobs import runs
from app.ui.input_panel import ChosenInput
from app.words.i18n import N_, _, _n, paragraph
from app.words.labels import label
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesRow, BytesTask, DifferenceRow, DifferenceTask
from attention_core.experiments.causal_modes import MATRIX
from attention_core.formatting import MIB, at_most, number
from pages.causal.cost_chart import HEIGHT, over_length, show_costs
from pages.causal.shared import bold, with_settings

MAX_REPORTED_LENGTH = 512
"""Largest length, in tokens, for the sentence on gradients; the longest measured length up to this is used."""
ALGORITHM_NAMES = {
    SUMS: N_("running sums"),
    STATES: N_("autograd storing all states"),
    MATRIX: N_("autograd with the explicit matrix"),
}
"""Names on screen of the algorithms that compute the gradient."""


def show(chosen: ChosenInput) -> list[BytesRow | DifferenceRow]:
    """Count the memory of the gradient of linear attention by three algorithms, and draw it."""
    [attention] = with_settings([ac.variant("linear")])
    d, d_v = chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = causal_gradient.tasks(chosen.source, d=d, d_v=d_v, head=chosen.head, word=attention.word)
    st.markdown("## " + _("Peak memory to compute the gradient of one head"), anchors=False)
    st.caption(_("Counted, not timed, for one head of size d = {d}, the head size of the chosen input.", d=d))

    def draw(rows: list[BytesRow | DifferenceRow], key: str) -> None:
        if counted := [row for row in rows if isinstance(row, BytesRow)]:
            points = over_length(counted, "peak_bytes", MIB)
            show_costs(points, ALGORITHM_NAMES, _("memory without q, k, v (MiB)"), f"{key}.gradient")

    def describe(rows: list[BytesRow | DifferenceRow]) -> str:
        return gradient_sentence(rows, label(attention))

    rows = runs.run_immediately(
        "causal_gradient", tasks, draw, key="causal.gradient", effort=_effort, describe=describe, height=HEIGHT
    )
    st.caption(
        _n(
            "Gradients are compared on the first token of the chosen input.",
            "Gradients are compared on the first {n} tokens of the chosen input.",
            n=min(chosen.qkv.n, causal_gradient.COMPARED_TOKENS),
        )
    )
    return rows


def _effort(task: BytesTask | DifferenceTask) -> float:
    return 100.0 + (task.n * task.d**2 / 5e3 if isinstance(task, BytesTask) else 0.0)


def gradient_sentence(rows: Sequence[BytesRow | DifferenceRow], name: str) -> str:
    """Return the memory of the three algorithms at one length, and the largest difference of the gradients, if known.

    Only differences in float32 are reported.
    """
    counted = [row for row in rows if isinstance(row, BytesRow)]
    differences = [row for row in rows if isinstance(row, DifferenceRow)]
    single = max((row.difference for row in differences if row.dtype == "float32"), default=None)
    sums, states, matrix = (
        {row.n: row.peak_bytes for row in counted if row.algorithm == each} for each in ALGORITHM_NAMES
    )
    n = max((n for n in matrix if n <= MAX_REPORTED_LENGTH), default=None)
    agreement = (
        _(
            "The gradients from running sums and from autograd differ by at most {most} times the largest entry of "
            "autograd's gradient.",
            most=at_most(single),
        )
        if single is not None
        else ""
    )
    if n is None:
        return agreement
    return paragraph(
        _(
            "To compute the gradient of {name} at {n} tokens, running sums over the tokens need **{sums} MiB**. "
            "PyTorch's autograd stores the state after every token and needs {states} MiB, {factor:.0f} times as much.",
            name=bold([name]),
            n=n,
            sums=number(sums[n] / MIB, 2),
            factor=states[n] / sums[n],
            states=number(states[n] / MIB, 2),
        ),
        _(
            "If autograd stores the n × n attention matrix instead of the states, it needs {matrix} MiB.",
            matrix=number(matrix[n] / MIB, 2),
        ),
        agreement,
    )
