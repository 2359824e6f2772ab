"""The gradient of causal linear attention: running sums beside autograd through all states and through the matrix."""

from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app import chart, run, takeaway
from app.causal.cost_words import COLOURS, listed, with_settings
from app.figures.curves import Curve, curves
from app.input_panel import Chosen
from app.naming import label
from app.share import Field
from app.text import _
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import COMPARED, STATES, SUMS, BytesTask, DifferenceTask
from attention_core.experiments.causal_modes import DTYPES, MATRIX
from attention_core.experiments.task import Row
from attention_core.writing import MIB, memory, written

TOLD = 512
"""Tokens the sentence speaks of, or the most below it."""


def fields() -> dict[str, Field]:
    """What a link to this view carries."""
    return {}


def show(chosen: Chosen) -> None:
    """Draw it."""
    [attention] = with_settings([ac.variant("linear")])
    d, d_v = chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = causal_gradient.tasks(chosen.source, d=d, d_v=d_v, head=chosen.head, word=attention.word)

    def draw(rows: list[Row], key: str) -> None:
        held = [row for row in rows if "peak_bytes" in row]
        apart = [row for row in rows if "difference" in row]
        st.markdown(_sentence(held, apart, attention))
        if held:
            _charts(held, key)
        _table(apart, key)

    rows = run.at_once("causal_gradient", tasks, draw, key="causal.gradient", effort=_effort)
    st.caption(
        _(
            "Bytes are counted: forward and backward of one head with d = {d}, beyond q, k, v. Gradients are compared "
            "on the first {n} tokens of this input.",
            d=d,
            n=min(chosen.qkv.n, COMPARED),
        )
    )
    _derivation()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chart.choose_format()
        if rows:
            takeaway.download(
                _("Numbers (CSV)"), lambda: _csv(rows), "causal-gradient.csv", "text/csv", "causal.gradient.csv"
            )


def names() -> dict[str, str]:
    """The ways' names on screen."""
    return {SUMS: _("running sums"), STATES: _("autograd through all states"), MATRIX: _("autograd through the matrix")}


def _effort(task: BytesTask | DifferenceTask) -> float:
    return 100.0 + (task.n * task.d**2 / 5e3 if isinstance(task, BytesTask) else 0.0)


def _points(held: Sequence[Row], way: str) -> dict[int, float]:
    return {int(row["n"] or 0): float(row["peak_bytes"] or 0) for row in held if row["way"] == way}


def _sentence(held: Sequence[Row], apart: Sequence[Row], attention: ac.Attention) -> str:
    single = max((float(r["difference"] or 0) for r in apart if r["dtype"] == "float32"), default=None)
    differ = (
        "" if single is None else _("The gradients differ by at most {most} of the largest.", most=written(single, 1))
    )
    sums, states, matrix = (_points(held, way) for way in names())
    both = [n for n in matrix if n <= TOLD]
    if not both:
        return differ
    n = max(both)
    return (
        _(
            "At n = {n} autograd through all states of {name} holds **{states}** and through the explicit matrix "
            "{matrix}, the running sums hold **{sums}**, {factor:.0f} times less than all states.",
            n=n,
            name=listed([label(attention)]),
            states=memory(states[n]),
            matrix=memory(matrix[n]),
            sums=memory(sums[n]),
            factor=states[n] / sums[n],
        )
        + " "
        + differ
    )


def _charts(held: Sequence[Row], key: str) -> None:
    left, right = st.columns(2)
    points = {way: _points(held, way) for way in names()}
    with left:
        st.markdown("###### " + _("Peak memory of forward and backward"))
        lines = [
            _curve(way, list(found), [held / MIB for held in found.values()]) for way, found in points.items() if found
        ]
        _chart(lines, _("MiB, one head"), f"{key}.memory", "memory")
    with right:
        st.markdown("###### " + _("Over that of the running sums"))
        ratios = {way: causal_gradient.ratios(held, way) for way in (STATES, MATRIX)}
        lines = [_curve(way, [n for n, _r in found], [r for _n, r in found]) for way, found in ratios.items() if found]
        _chart(lines, _("times the running sums"), f"{key}.ratio", "ratio")


def _curve(way: str, x: Sequence[float], y: Sequence[float | None]) -> Curve:
    dash = "dash" if way == MATRIX else "solid"
    return Curve(name=names()[way], x=x, y=y, colour=COLOURS[way], dash=dash)


def _chart(lines: list[Curve], unit: str, key: str, name: str) -> None:
    ticks = sorted({x for line in lines for x in line.x})
    figure = curves(lines, x_title=_("tokens n"), y_title=unit, log_x=True, log_y=True, x_ticks=ticks, height=400)
    figure.update_yaxes(dtick="D2")
    told = _("Lines: peak memory of forward and backward against the number of tokens, {unit}", unit=unit)
    chart.show(figure, key=key, name=f"gradient-{name}", alt=told)


def _table(apart: Sequence[Row], key: str) -> None:
    found = {(r["gradient"], r["way"], r["dtype"]): float(r["difference"] or 0) for r in apart}
    shown = [
        {_("gradient at"): letter}
        | {
            f"{title}, {dtype}": f"{found[letter, way, dtype]:.1e}"
            for way, title in ((STATES, _("from all states")), (MATRIX, _("from the matrix")))
            for dtype in DTYPES
            if (letter, way, dtype) in found
        }
        for letter in "qkv"
    ]
    st.markdown("###### " + _("How far the running sums' gradients are from autograd's, over the largest gradient"))
    st.dataframe(shown, hide_index=True, key=f"{key}.table")


def _derivation() -> None:
    with st.expander(_("Why no state has to be kept"), icon=":material/function:"):
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


def _csv(rows: Sequence[Row]) -> bytes:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return takeaway.to_csv(columns, [[row.get(name) for name in columns] for row in rows])
