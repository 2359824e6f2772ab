"""The Gradient view: gradients of causal linear attention by running sums, compared with two forms of autograd."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

import attention_core as ac
from app.figures.curves import Curve, curves
from app.jobs import runs
from app.ui import chart, export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, paragraph
from app.words.labels import label
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesRow, BytesTask, DifferenceRow
from attention_core.experiments.causal_modes import DTYPES, MATRIX
from attention_core.formatting import MIB, at_most, formatted, memory
from pages.causal.legend import COLOURS, bold, dash, with_settings

TOLD = 512
"""Largest length, in tokens, that the sentence reports; otherwise the longest measured length below it."""
WAYS = {SUMS: N_("running sums"), STATES: N_("autograd through all states"), MATRIX: N_("autograd through the matrix")}
"""Names on screen of the ways to compute the gradient."""


def show(chosen: ChosenInput) -> None:
    """Draw the view: the sentence, the charts, the table and the derivation."""
    [attention] = with_settings([ac.variant("linear")])
    d, d_v = chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = causal_gradient.tasks(chosen.source, d=d, d_v=d_v, head=chosen.head, word=attention.word)

    def draw(rows: list[BytesRow | DifferenceRow], key: str) -> None:
        held = [row for row in rows if isinstance(row, BytesRow)]
        apart = [row for row in rows if isinstance(row, DifferenceRow)]
        st.markdown(sentence(held, apart, label(attention)))
        if held:
            _charts(held, key)
        _table(apart, key)

    rows = runs.run_immediately("causal_gradient", tasks, draw, key="causal.gradient", effort=_effort)
    st.caption(
        _(
            "Bytes are counted: forward and backward of one head with d = {d}, beyond q, k, v. Gradients are compared "
            "on the first {n} tokens of this input.",
            d=d,
            n=min(chosen.qkv.n, causal_gradient.COMPARED),
        )
    )
    _derivation()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chart.choose_format()
        if rows:
            export.download(_("Numbers (CSV)"), lambda: export.csv_of(rows), "causal-gradient.csv")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the comparison: the gradients of one head or of all heads, on the first tokens."""
    [attention] = with_settings([ac.variant("linear")])
    tokens = min(chosen.qkv.n, causal_gradient.COMPARED)
    return replace(input_panel.scope(chosen), aggregation="each", tokens=tokens, variants=(attention.word,))


def _effort(task: BytesTask | causal_gradient.DifferenceTask) -> float:
    return 100.0 + (task.n * task.d**2 / 5e3 if isinstance(task, BytesTask) else 0.0)


def sentence(held: Sequence[BytesRow], apart: Sequence[DifferenceRow], name: str) -> str:
    """Return the memory of the three ways at one length, and the largest difference of the gradients, if known.

    Args:
        held: measured memory, in increasing order of length.
        apart: measured differences, of any dtype.
        name: name of the variant.
    """
    single = max((row.difference for row in apart if row.dtype == "float32"), default=None)
    sums, states, matrix = ({row.n: row.peak_bytes for row in held if row.way == way} for way in WAYS)
    n = max((n for n in matrix if n <= TOLD), default=None)
    return paragraph(
        _(
            "At n = {n} autograd through all states of {name} holds **{states}** and through the explicit matrix "
            "{matrix}, the running sums hold **{sums}**, {factor:.0f}× less than all states.",
            n=n,
            name=bold([name]),
            states=memory(states[n]),
            matrix=memory(matrix[n]),
            sums=memory(sums[n]),
            factor=states[n] / sums[n],
        )
        if n is not None
        else "",
        _("The gradients differ by at most {most} of the largest.", most=at_most(single)) if single is not None else "",
    )


def _charts(held: Sequence[BytesRow], key: str) -> None:
    left, right = st.columns(2)
    with left:
        st.markdown("## " + _("Peak memory of forward and backward"), anchors=False)
        bytes_held = {way: [(row.n, row.peak_bytes / MIB) for row in held if row.way == way] for way in WAYS}
        _chart(bytes_held, _("MiB, one head"), f"{key}.memory", "memory")
    with right:
        st.markdown("## " + _("Over that of the running sums"), anchors=False)
        ratios = {way: causal_gradient.ratios(held, way) for way in (STATES, MATRIX)}
        _chart(ratios, _("times the running sums"), f"{key}.ratio", "ratio")


def _chart(points: Mapping[str, list[tuple[int, float]]], unit: str, key: str, name: str) -> None:
    lines = [
        Curve(_(WAYS[way]), [n for n, _y in found], [y for _n, y in found], colour=COLOURS[way], dash=dash(way))
        for way, found in points.items()
        if found
    ]
    ticks = sorted({x for line in lines for x in line.x})
    figure = curves(lines, x_title=_("tokens n"), y_title=unit, log_x=True, log_y=True, x_ticks=ticks, height=400)
    figure["layout"]["yaxis"]["dtick"] = "D2"
    text = _("Lines: peak memory of forward and backward against the number of tokens, {unit}", unit=unit)
    chart.show(figure, key=key, name=f"gradient-{name}", alt=text)


def _table(apart: Sequence[DifferenceRow], key: str) -> None:
    found = {(row.gradient, row.way, row.dtype): row.difference for row in apart}
    shown = [
        {_("gradient at"): letter}
        | {
            f"{title}, {dtype}": formatted(found[letter, way, dtype], ".1e")
            for way, title in ((STATES, _("from all states")), (MATRIX, _("from the matrix")))
            for dtype in DTYPES
            if (letter, way, dtype) in found
        }
        for letter in "qkv"
    ]
    st.markdown(
        "## " + _("How far the running sums' gradients are from autograd's, over the largest gradient"), anchors=False
    )
    st.dataframe(shown, hide_index=True, key=f"{key}.table")


def _derivation() -> None:
    def draw() -> None:
        st.markdown(_("The numerator's gradient $G_i$ meets every product once:"))
        st.latex(
            r"o_i = \sum_{j\le i} (\varphi(q_i)^\top\varphi(k_j))\, v_j \;\Rightarrow\;"
            r"\mathrm{d}L = \sum_{j\le i} G_i^\top v_j\; \mathrm{d}\big(\varphi(q_i)^\top\varphi(k_j)\big)"
            r" + \varphi(q_i)^\top\varphi(k_j)\; G_i^\top \mathrm{d}v_j"
        )
        st.markdown(_("Collected by query, key and value, each gradient is a running sum again:"))
        st.latex(
            r"\begin{aligned}"
            r"\nabla\varphi(q_i) &= \Big(\textstyle\sum_{j\le i}\varphi(k_j)\,v_j^\top\Big) G_i"
            r" &&\text{forward: the states of attention itself}\;\\"
            r"\nabla\varphi(k_j) &= \Big(\textstyle\sum_{i\ge j}\varphi(q_i)\,G_i^\top\Big) v_j"
            r" &&\text{from the last token back}\\"
            r"\nabla v_j &= \Big(\textstyle\sum_{i\ge j}\varphi(q_i)\,G_i^\top\Big)^{\!\top} \varphi(k_j)"
            r" &&\text{the same sum}"
            r"\end{aligned}"
        )
        st.markdown(
            _(
                "One state going forth and one coming back replace all n of them. The normaliser is one more column of "
                "values, all ones. Source: Katharopoulos et al. 2020, [arXiv 2006.16236](https://arxiv.org/abs/2006.16236)."
            )
        )

    lazy_expander(_("Why no state has to be kept"), draw, key="causal.method", icon=":material/function:")
