"""Three algorithms, one answer: chunked, recurrent and cumsum beside each other and beside the explicit matrix."""

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app import chart, run, share, takeaway
from app.causal.cost_words import COLOURS, listed, titles, with_settings
from app.figures.curves import Curve, curves
from app.input_panel import Chosen
from app.naming import label
from app.share import Field
from app.text import _, paragraph
from attention_core.algorithms.causal_scan import CHUNK
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_modes import AGREED, DTYPES, MATRIX, ROUNDS, AgreementTask, CostTask, compared
from attention_core.experiments.task import Row
from attention_core.limits import current
from attention_core.writing import MIB, read_off, written

HEIGHT = 400


def fields() -> dict[str, Field]:
    """What a link to this view carries."""
    return {
        "c_size": share.one_of(16, _sizes()),
        "c_form": share.choice(*_summable()),
        "c_cost": share.choice("work", "time"),
    }


def show(chosen: Chosen) -> None:
    """Draw it."""
    attentions = with_settings(v for v in ac.all_variants() if causal_modes.forms(v))
    word = next(a.word for a in attentions if a.key == st.session_state["c_form"])
    words, d = [a.word for a in attentions], st.session_state["c_size"]
    tasks = causal_modes.tasks(chosen.source, words, head=chosen.head, word=word, d=d)
    costs = tuple(task for task in tasks if isinstance(task, CostTask))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        _controls()
        times = _times(costs, row) if st.session_state["c_cost"] == "time" else []

    def draw(rows: list[Row], key: str) -> None:
        agreed = [row for row in rows if "difference" in row]
        counted = [row for row in rows if "way" in row]
        st.markdown(_sentence(chosen, agreed, counted, times, word, rounds(times, costs)))
        if counted:
            _charts(counted, times, key)
        _table(attentions, agreed, key)

    rows = run.at_once("causal_modes", tasks, draw, key="causal.algorithms", effort=effort)
    st.caption("  \n".join(_notes(chosen, attentions)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chart.choose_format()
        _formulas()
        if rows:
            takeaway.download(
                _("Numbers (CSV)"),
                lambda: _csv(rows, times),
                "causal-algorithms.csv",
                "text/csv",
                "causal.algorithms.csv",
            )


def _times(tasks: tuple[CostTask, ...], row: DeltaGenerator) -> list[Row]:
    """Draw the button that measures; the samples of these tasks, once there are some."""
    measured: run.Run[Row] | None = run.on_button(
        "causal_modes",
        tasks,
        partial(causal_modes.following, tasks),
        key="causal",
        label=_("Measure times"),
        icon=":material/timer:",
        button="causal.measure",
        row=row,
        progress=partial(_progress, tasks),
    )
    return measured.rows if measured is not None and measured.asked == tasks else []


def _progress(tasks: Sequence[CostTask], measured: run.Run[Row]) -> tuple[float, str]:
    efforts = {(task.way, task.n): effort(task) for task in tasks}
    done = sum(efforts[str(row["way"]), int(row["n"] or 0)] for row in measured.rows)
    told = _("Round {i} of {all}", i=int(measured.rows[-1]["round"] or 0) + 1, all=ROUNDS)
    return min(1.0, done / sum(efforts.values()) / ROUNDS), told


def rounds(times: Sequence[Row], tasks: Sequence[CostTask]) -> int:
    """Whole rounds that there are of a measurement."""
    counts = Counter((str(row["way"]), int(row["n"] or 0)) for row in times)
    return min((counts[task.way, task.n] for task in tasks), default=0)


def medians(times: Sequence[Row]) -> list[Row]:
    """One row per form and length."""
    taken: dict[tuple[str, int], list[float]] = {}
    for row in times:
        taken.setdefault((str(row["way"]), int(row["n"] or 0)), []).append(float(row["ms"] or 0))
    return [{"way": way, "n": n, "ms": statistics.median(ms)} for (way, n), ms in taken.items()]


def effort(task: AgreementTask | CostTask) -> float:
    """Milliseconds, about: a step counted costs half of one, a pair of tokens a few nanoseconds."""
    if isinstance(task, CostTask):
        return 0.5 * task.n if task.way == "recurrent" else 5 + task.n**2 / 2e5 + task.n * task.d**2 / 1e5
    return 100.0


def _sizes() -> list[int]:
    """Head sizes whose d² lies within what is measured."""
    return [d for d in (8, 16, 32, 64) if 2 * d * d <= current().timed_tokens]


def _summable() -> list[str]:
    """The variants that can hold all states at once, the plainest first."""
    keys = [v.key for v in ac.all_variants() if "cumsum" in causal_modes.forms(v)]
    return sorted(keys, key=lambda key: key != "linear")


def _controls() -> None:
    names = {key: _(ac.variant(key).title) for key in _summable()}
    beside = {"work": _("multiply-adds"), "time": _("time")}
    _pick("c_form", _("Costs of"), names)
    _pick("c_size", _("Head size d"), {d: str(d) for d in _sizes()})
    _pick("c_cost", _("Beside memory"), beside)


def _pick(key: str, title: str, names: dict[Any, str]) -> None:
    st.segmented_control(title, list(names), key=key, format_func=names.__getitem__, required=True, width="content")


def _points(rows: Sequence[Row], way: str, measure: str) -> list[tuple[float, float]]:
    return sorted((float(r["n"] or 0), float(r[measure] or 0)) for r in rows if r["way"] == way)


def _crossing(rows: Sequence[Row], measure: str) -> tuple[float, float] | None:
    """Where all states at once begin to cost less than the explicit matrix, and what both cost there."""
    return causal_modes.crossing(_points(rows, "cumsum", measure), _points(rows, MATRIX, measure))


def _sentence(
    chosen: Chosen, agreed: Sequence[Row], counted: Sequence[Row], times: Sequence[Row], word: str, whole: int
) -> str:
    worst = {
        name: max((float(r["difference"] or 0) for r in agreed if r["dtype"] == name), default=0.0) for name in DTYPES
    }
    told = _(
        "On {tokens} every algorithm gives **one answer**: no two differ by more than {single} of the "
        "largest output in float32, {double} in float64.",
        tokens=_compared(chosen.qkv.n),
        single=written(worst["float32"], 1),
        double=written(worst["float64"], 1),
    )
    if not counted:
        return told
    d, last, name = counted[0]["d"], max(int(r["n"] or 0) for r in counted), label(ac.from_word(word))
    at, clock = _crossing(counted, "peak_bytes"), _crossing(medians(times), "ms")
    if at is None:
        told += " " + _(
            "All states of {name} at once (cumsum) still hold more than the explicit matrix at n = {last:,}: d² is "
            "{square:,}.",
            name=listed([name]),
            last=last,
            square=int(d or 0) ** 2,
        )
    else:
        told += " " + _(
            "All states of {name} at once (cumsum) hold less than the explicit matrix from **n ≈ {at}** on, where "
            "d² = {square:,}.",
            name=listed([name]),
            at=read_off(at[0]),
            square=int(d or 0) ** 2,
        )
    if clock is not None:
        told = paragraph(told, _("On this machine it is faster, too, from n ≈ {n} on.", n=read_off(clock[0])))
    if times and whole < ROUNDS:
        told = paragraph(
            told, _("The times are not complete: {count} of {all} rounds are there.", count=whole, all=ROUNDS)
        )
    return told


def _compared(n: int) -> str:
    if n >= compared(n):
        return _("these {n} tokens", n=compared(n))
    return _(
        "these {n} tokens, repeated to {several} so that chunks of {chunk} follow one another,",
        n=n,
        several=compared(n),
        chunk=CHUNK,
    )


def _charts(counted: Sequence[Row], times: Sequence[Row], key: str) -> None:
    d = int(counted[0]["d"] or 0)
    left, right = st.columns(2)
    with left:
        st.markdown("###### " + _("Peak memory, one head"))
        lines = _lines(counted, "peak_bytes", 1 / MIB)
        _chart(lines, _("MiB beyond q, k and v"), f"{key}.memory", "memory", mark=d * d)
    with right:
        if st.session_state["c_cost"] == "work":
            st.markdown("###### " + _("Multiply-adds, one head"))
            lines = _lines(counted, "multiply_adds", 1.0)
            _chart(lines, _("multiply-adds"), f"{key}.work", "work")
            return
        st.markdown("###### " + _("Time, one head"))
        if times:
            _chart(_lines(medians(times), "ms", 1.0), _("ms, median"), f"{key}.time", "time", mark=d * d)
        else:
            st.info(_("Press “Measure times”: every form runs on this machine in {n} rounds.", n=ROUNDS))


def _lines(rows: Sequence[Row], measure: str, factor: float) -> list[Curve]:
    lines = []
    for way, title in titles().items():
        if points := _points(rows, way, measure):
            x, y = [n for n, _cost in points], [factor * cost for _n, cost in points]
            dash = "dash" if way == MATRIX else "solid"
            lines.append(Curve(name=title, x=x, y=y, colour=COLOURS[way], dash=dash))
    if (at := _crossing(rows, measure)) is not None and at[0] > lines[0].x[0]:
        name = _("cumsum pays from n ≈ {n}", n=read_off(at[0]))
        lines.append(Curve(name=name, x=[at[0]], y=[factor * at[1]], colour=COLOURS["cumsum"], hollow=True))
    return lines


def _chart(lines: list[Curve], unit: str, key: str, name: str, mark: float | None = None) -> None:
    ticks = sorted({x for line in lines if len(line.x) > 1 for x in line.x})
    axis = _("tokens n (upright line: d²)") if mark else _("tokens n")
    figure = curves(lines, x_title=axis, y_title=unit, log_x=True, log_y=True, mark=mark, x_ticks=ticks, height=HEIGHT)
    told = _("Lines: {what} of each algorithm against the number of tokens", what=unit)
    chart.show(figure, key=key, name=f"causal-{name}", alt=told)


def _table(attentions: Sequence[ac.Attention], agreed: Sequence[Row], key: str) -> None:
    """How far the algorithms lie apart in pairs, and the farthest of them from the matrix, variant by variant."""
    forms = [way for way in titles() if way != MATRIX]
    pairs: dict[str, tuple[tuple[str, str], ...]] = {
        f"{titles()[a]} − {titles()[b]}": ((a, b),) for a, b in itertools.combinations(forms, 2)
    }
    pairs |= {_("farthest from the matrix"): tuple((way, MATRIX) for way in forms)}
    found = {(r["variant"], r["dtype"], (r["a"], r["b"])): float(r["difference"] or 0) for r in agreed}
    shown = []
    for attention in attentions:
        row = {_("variant"): label(attention)}
        for title, those in pairs.items():
            worst = [
                max((found[at] for pair in those if (at := (attention.word, dtype, pair)) in found), default=None)
                for dtype in DTYPES
            ]
            row[title] = " · ".join(f"{value:.1e}" for value in worst if value is not None) or "—"
        shown.append(row)
    st.markdown("###### " + _("Largest difference of two answers over the largest output, float32 · float64"))
    st.dataframe(shown, hide_index=True, key=f"{key}.table")


def _notes(chosen: Chosen, attentions: Sequence[ac.Attention]) -> list[str]:
    without = [label(a) for a in attentions if "cumsum" not in causal_modes.forms(a.variant)]
    told = [
        _(
            "— {names}: no cumsum form; their features are made chunk by chunk, so that all n states never exist at "
            "once.",
            names=listed(without),
        ),
        _(
            "Costs are counted (time is measured) on Gaussian q, k and v with d_v = d: they do not depend on the "
            "numbers. Multiply-adds are those of the algorithms' products, feature maps and divisions aside."
        ),
        _(
            "A chunk has {chunk} tokens: up to there *chunked* makes one explicit matrix and costs what that does.",
            chunk=CHUNK,
        ),
    ]
    if chosen.qkv.n > AGREED:
        told.insert(0, _("Differences are taken on the first {most} of {n} tokens.", most=AGREED, n=chosen.qkv.n))
    return told


def _formulas() -> None:
    with st.popover(_("The three algorithms"), icon=":material/function:", type="tertiary"):
        st.latex(
            r"o_i = \frac{\varphi(q_i)^\top S_i}{\varphi(q_i)^\top z_i},\quad "
            r"S_i = \sum_{j\le i}\varphi(k_j)v_j^\top,\quad z_i = \sum_{j\le i}\varphi(k_j)"
        )
        st.markdown(
            _(
                "- **recurrent**: one token after the other, $S_i = S_{{i-1}} + \\varphi(k_i)v_i^\\top$: one state of "
                "$C d_v$ numbers, no two steps at once. This is the decoder.\n"
                "- **cumsum**: all $n$ states at once by a cumulative sum: parallel, but $n\\,C\\,d_v$ numbers. The "
                "explicit matrix has $n^2$, so with $C = d_v = d$ it pays from $n = d^2$ on.\n"
                "- **chunked**: inside chunks of {chunk} tokens the explicit product, from chunk to chunk the state: "
                "parallel where it matters, and one state.",
                chunk=CHUNK,
            )
        )


def _csv(rows: Sequence[Row], times: Sequence[Row]) -> bytes:
    every = [*rows, *times]
    names = list(dict.fromkeys(name for row in every for name in row))
    return takeaway.to_csv(names, [[row.get(name) for name in names] for row in every])
