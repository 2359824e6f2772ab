"""The Three algorithms view: the chunked, recurrent and cumsum forms compared with each other and with the matrix."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.curves import Curve, curves
from app.figures.spread import Spread, spread
from app.jobs import runs
from app.state.controls import Options, choice
from app.ui import chart, export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_popover
from app.ui.scope import Scope
from app.words.i18n import N_, _, paragraph
from app.words.labels import label
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_modes import AGREED, DTYPES, MATRIX, ROUNDS, AgreementRow, CostRow, TimeRow
from attention_core.formatting import MIB, at_most, format_interpolated, formatted
from attention_core.limits import current
from attention_core.ops.linear.causal_scan import CHUNK
from pages.causal.legend import COLOURS, FORMS, bold, dash, with_settings

HEIGHT = 400


def sizes() -> list[int]:
    """Return the head sizes d for which lengths beyond n = d² are still measured."""
    return [d for d in (8, 16, 32, 64) if 2 * d * d <= current().timed_tokens]


def summable() -> list[str]:
    """Return the keys of the variants that have a cumsum form, linear attention first."""
    keys = [v.key for v in ac.all_variants() if "cumsum" in causal_modes.forms(v)]
    return sorted(keys, key=lambda key: key != "linear")


class AlgorithmsOptions(Options, prefix="c_"):
    """The options that a link to this view carries."""

    size = choice(lambda: {d: str(d) for d in sizes()}, N_("Head size d"), default=16)
    counted = choice(lambda: {key: _(ac.variant(key).title) for key in summable()}, N_("Costs of"), link="c_form")
    beside = choice({"work": N_("multiply-adds"), "time": N_("time")}, N_("Beside memory"), link="c_cost")


def show(chosen: ChosenInput) -> None:
    """Draw the view: the options, the sentence, the charts, the table and the downloads."""
    attentions = _compared()
    options = AlgorithmsOptions.now()
    counted = next(a for a in attentions if a.key == options.counted)
    tasks = causal_modes.tasks(
        chosen.source, [a.word for a in attentions], head=chosen.head, word=counted.word, d=options.size
    )
    costs = tuple(task for task in tasks if isinstance(task, causal_modes.CostTask))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        for option in (AlgorithmsOptions.counted, AlgorithmsOptions.size, AlgorithmsOptions.beside):
            option.draw()
        times = _times(costs, row) if options.beside == "time" else []

    def draw(rows: list[AgreementRow | CostRow], key: str) -> None:
        agreed = [row for row in rows if isinstance(row, AgreementRow)]
        counts = [row for row in rows if isinstance(row, CostRow)]
        rounds = whole_rounds(times, costs)
        st.markdown(sentence(chosen.qkv.n, agreed, counts, times, label(counted), rounds=rounds))
        if counts:
            _charts(counts, times, options.beside, key)
        _table(attentions, agreed, key)

    rows = runs.run_immediately("causal_modes", tasks, draw, key="causal.algorithms", effort=effort)
    without = [label(a) for a in attentions if "cumsum" not in causal_modes.forms(a.variant)]
    st.caption("  \n".join(notes(chosen.qkv.n, without)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chart.choose_format()
        _formulas()
        if rows:
            export.download(_("Numbers (CSV)"), lambda: export.csv_of([*rows, *times]), "causal-algorithms.csv")


def _compared() -> list[ac.Attention]:
    """Return the variants whose algorithms are compared, with the visitor's settings."""
    return with_settings(v for v in ac.all_variants() if causal_modes.forms(v))


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the comparison: one head or all heads, on at most ``AGREED`` tokens."""
    words = tuple(attention.word for attention in _compared())
    return replace(input_panel.scope(chosen), aggregation="each", tokens=min(chosen.qkv.n, AGREED), variants=words)


def _times(tasks: tuple[causal_modes.CostTask, ...], row: DeltaGenerator) -> list[TimeRow]:
    """Draw the button that measures times, and return the samples of these tasks measured so far."""
    measured: runs.Run[TimeRow] | None = runs.run_on_button(
        "causal_modes",
        tasks,
        partial(causal_modes.next_sample, tasks),
        key="causal",
        label=_("Measure times"),
        icon=":material/timer:",
        button="causal.measure",
        row=row,
        progress=partial(progress, tasks),
    )
    return measured.rows if measured is not None and measured.request == tasks else []


def progress(tasks: Sequence[causal_modes.CostTask], measured: runs.Run[TimeRow]) -> tuple[float, str]:
    """Return the completed share of a time measurement, from 0 to 1, and a line that reports the current round."""
    efforts = {(task.way, task.n): effort(task) for task in tasks}
    done = sum(efforts[row.way, row.n] for row in measured.rows)
    text = _("Round {i} of {all}", i=max((row.round for row in measured.rows), default=0) + 1, all=ROUNDS)
    return min(1.0, done / sum(efforts.values()) / ROUNDS), text


def whole_rounds(times: Sequence[TimeRow], tasks: Sequence[causal_modes.CostTask]) -> int:
    """Return the number of rounds in which every task has been measured."""
    counts = Counter((row.way, row.n) for row in times)
    return min((counts[task.way, task.n] for task in tasks), default=0)


def effort(task: causal_modes.AgreementTask | causal_modes.CostTask) -> float:
    """Return the approximate milliseconds of a task: 0.5 per counted step, a few nanoseconds per pair of tokens."""
    if isinstance(task, causal_modes.CostTask):
        return 0.5 * task.n if task.way == "recurrent" else 5 + task.n**2 / 2e5 + task.n * task.d**2 / 1e5
    return 100.0


def over_length(rows: Iterable[CostRow | TimeRow], measure: str, unit: float = 1.0) -> dict[str, Spread]:
    """Return a measure as a function of the length, by form, with the median of repeated samples."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points.setdefault(row.way, []).append((row.n, getattr(row, measure) / unit))
    return {way: spread(points[way]) for way in FORMS if way in points}


def crossing(found: Mapping[str, Spread]) -> tuple[float, float] | None:
    """Return the length from which cumsum costs less than the explicit matrix, and the cost there; None if unknown."""
    lines = [found[way] for way in ("cumsum", MATRIX) if way in found]
    points = [list(zip(line.x, line.middle, strict=True)) for line in lines]
    return causal_modes.crossing(*points) if len(points) == 2 else None


def sentence(
    n: int,
    agreed: Sequence[AgreementRow],
    counted: Sequence[CostRow],
    times: Sequence[TimeRow],
    name: str,
    *,
    rounds: int = 0,
) -> str:
    """Return how far the outputs differ, and from which length cumsum costs less than the explicit matrix.

    Args:
        n: tokens of the input.
        agreed: differences between the outputs of the algorithms.
        counted: counted costs of the forms of one variant.
        times: times of these forms on this machine.
        name: name of the variant.
        rounds: number of complete rounds of ``times``.
    """
    single, double = (
        at_most(max((row.difference for row in agreed if row.dtype == name), default=0.0)) for name in DTYPES
    )
    if n < causal_modes.compared_length(n):
        text = _(
            "On these {n} tokens, repeated to {several} so that chunks of {chunk} follow one another, every algorithm "
            "gives **one answer**: no two differ by more than {single} of the largest output in float32, {double} in "
            "float64.",
            n=n,
            several=causal_modes.compared_length(n),
            chunk=CHUNK,
            single=single,
            double=double,
        )
    else:
        text = _(
            "On these {n} tokens every algorithm gives **one answer**: no two differ by more than {single} of the "
            "largest output in float32, {double} in float64.",
            n=causal_modes.compared_length(n),
            single=single,
            double=double,
        )
    if not counted:
        return text
    at, clock = crossing(over_length(counted, "peak_bytes")), crossing(over_length(times, "ms"))
    if at is None:
        pays = _(
            "All states of {name} at once (cumsum) still hold more than the explicit matrix at n = {last:,}: d² is "
            "{square:,}.",
            name=bold([name]),
            last=max(row.n for row in counted),
            square=counted[0].d ** 2,
        )
    else:
        pays = _(
            "All states of {name} at once (cumsum) hold less than the explicit matrix from **n ≈ {at}** on, where "
            "d² = {square:,}.",
            name=bold([name]),
            at=format_interpolated(at[0]),
            square=counted[0].d ** 2,
        )
    return paragraph(
        text,
        pays,
        _("On this machine it is faster, too, from n ≈ {n} on.", n=format_interpolated(clock[0])) if clock else "",
        _("The times are not complete: {count} of {all} rounds are there.", count=rounds, all=ROUNDS)
        if times and rounds < ROUNDS
        else "",
    )


def _charts(counted: Sequence[CostRow], times: Sequence[TimeRow], beside: str, key: str) -> None:
    square = counted[0].d ** 2
    left, right = st.columns(2)
    with left:
        st.markdown("## " + _("Peak memory, one head"), anchors=False)
        found = over_length(counted, "peak_bytes", MIB)
        _chart(found, _("MiB beyond q, k and v"), f"{key}.memory", "memory", mark=square)
    with right:
        if beside == "work":
            st.markdown("## " + _("Multiply-adds, one head"), anchors=False)
            _chart(over_length(counted, "multiply_adds"), _("multiply-adds"), f"{key}.work", "work")
            return
        st.markdown("## " + _("Time, one head"), anchors=False)
        if times:
            _chart(over_length(times, "ms"), _("ms, median"), f"{key}.time", "time", mark=square)
        else:
            st.info(_("Press “Measure times”: every form runs on this machine in {n} rounds.", n=ROUNDS))


def _chart(found: Mapping[str, Spread], unit: str, key: str, name: str, mark: float | None = None) -> None:
    lines = [line.curve(_(FORMS[way]), COLOURS[way], dash=dash(way), band=False) for way, line in found.items()]
    ticks = sorted({x for line in lines for x in line.x})
    if (at := crossing(found)) is not None and at[0] > ticks[0]:
        title = _("cumsum pays from n ≈ {n}", n=format_interpolated(at[0]))
        lines.append(Curve(title, [at[0]], [at[1]], colour=COLOURS["cumsum"], hollow=True))
    axis = _("tokens n (upright line: d²)") if mark else _("tokens n")
    figure = curves(lines, x_title=axis, y_title=unit, log_x=True, log_y=True, mark=mark, x_ticks=ticks, height=HEIGHT)
    text = _("Lines: {what} of each algorithm against the number of tokens", what=unit)
    chart.show(figure, key=key, name=f"causal-{name}", alt=text)


def _table(attentions: Sequence[ac.Attention], agreed: Sequence[AgreementRow], key: str) -> None:
    """Draw the differences of each variant: between each pair of algorithms, and the largest one from the matrix."""
    forms = [way for way in FORMS if way != MATRIX]
    pairs: dict[str, tuple[tuple[str, str], ...]] = {
        f"{_(FORMS[a])} − {_(FORMS[b])}": ((a, b),) for a, b in itertools.combinations(forms, 2)
    }
    pairs |= {_("farthest from the matrix"): tuple((way, MATRIX) for way in forms)}
    found = {(row.variant, row.dtype, (row.a, row.b)): row.difference for row in agreed}
    shown = []
    for attention in attentions:
        row = {_("variant"): label(attention)}
        for title, those in pairs.items():
            worst = [
                max((found[at] for pair in those if (at := (attention.word, dtype, pair)) in found), default=None)
                for dtype in DTYPES
            ]
            row[title] = " · ".join(formatted(value, ".1e") for value in worst if value is not None) or "—"
        shown.append(row)
    st.markdown(
        "## " + _("Largest difference of two answers over the largest output, float32 · float64"), anchors=False
    )
    st.dataframe(shown, hide_index=True, key=f"{key}.table")


def notes(n: int, without: Sequence[str]) -> list[str]:
    """Return the notes on what is compared and counted.

    Args:
        n: tokens of the input.
        without: names of the variants that have no cumsum form.
    """
    return [
        *([_("Differences are taken on the first {most} of {n} tokens.", most=AGREED, n=n)] if n > AGREED else []),
        _(
            "— {names}: no cumsum form; their features are made chunk by chunk, so that all n states never exist at "
            "once.",
            names=bold(without),
        ),
        _(
            "Costs are counted (time is measured) on Gaussian q, k and v with d_v = d: they do not depend on the "
            "numbers. Multiply-adds are those of the algorithms' products, feature maps and divisions aside."
        ),
        _(
            "A chunk has {chunk} tokens: up to that length *chunked* computes one explicit matrix, and the state in "
            "addition.",
            chunk=CHUNK,
        ),
    ]


def _formulas() -> None:
    def draw() -> None:
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

    lazy_popover(_("The three algorithms"), draw, key="causal.algorithms", icon=":material/function:", type="tertiary")
