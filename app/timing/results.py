"""The runs on screen: curves, a table, and the numbers to take away."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import chart, takeaway
from app.figures.curves import Curve, curves
from app.figures.timing import level, stamped
from app.text import _, literal
from app.timing.options import subjects
from app.timing.series import Series, name, series
from app.timing.words import in_one_sentence, masking, stamp_lines, told
from attention_core.measure.records import Run
from attention_core.measure.summary import growth
from attention_core.writing import MIB, between


def show(live: Run | None, beside: Run | None, key: str) -> None:
    """Draw everything below the controls."""
    runs = [(run, on) for run, on in ((live, True), (beside, False)) if run is not None]
    found = [line for run, on in runs for line in series(run, live=on)]
    if not found:
        st.info(_("Nothing measured yet: press “Run on this machine”."), icon=":material/timer:")
        return
    first = [line for line in found if line.live] or found
    st.markdown(in_one_sentence(first))
    if masked := masking(first):
        st.markdown(masked)
    left, right = st.columns([11, 9])
    with left:
        st.markdown("###### " + _("Time of one call"))
        times = [_curve(line, [(p.n, *p.quartiles) for p in line.points], found) for line in found]
        _chart(times, _("ms"), runs, found, f"{key}.time", "time")
    with right:
        side: str = st.session_state["t_side"]
        st.markdown("###### " + sides()[side])
        _chart(_side(side, found), units()[side], runs, found, f"{key}.{side}", side)
    for run, on in runs:
        _notes(run, on)
    rows = [_row(line) for line in found]
    st.dataframe(rows, hide_index=True, key=f"{key}.table", column_config=_columns())
    if key.endswith("end"):
        takeaway.download(_("Numbers (CSV)"), lambda: _csv(found), "timing.csv", "text/csv", "timing.csv")


def sides() -> dict[str, str]:
    """What may stand beside the time."""
    return {"ratio": _("Time over softmax's"), "memory": _("Peak memory"), "work": _("Multiply-adds")}


def units() -> dict[str, str]:
    """Their axes."""
    return {"ratio": _("times softmax"), "memory": _("MiB beyond the inputs"), "work": _("multiply-adds, counted")}


def _side(side: str, found: Sequence[Series]) -> list[Curve]:
    if side == "ratio":
        return [
            _curve(line, [(r.n, r.low, r.middle, r.high) for r in line.ratios], found)
            for line in found
            if line.ratios and not line.is_reference
        ]
    values = {"memory": lambda p: p.peak_bytes / MIB, "work": lambda p: p.multiply_adds}[side]
    return [_curve(line, [(p.n, y := values(p), y, y) for p in line.points], found) for line in found]


def _curve(line: Series, values: Sequence[tuple[float, float, float, float]], found: Sequence[Series]) -> Curve:
    solid = {other.name for other in found if other.live}
    x, low, middle, high = zip(*values, strict=True)
    banded = low != high and (line.live or not solid)  # the bands of two runs would hide each other
    dash = ("dot", "dashdot") if line.masked else ("solid", "dash")
    return Curve(
        name=line.name,
        x=x,
        y=[y or None for y in middle],
        low=low if banded else None,
        high=high if banded else None,
        colour=line.colour,
        dash=dash[not line.live],
        group=line.name,
        listed=line.live or line.name not in solid,
        hollow=not line.live,
    )


def _chart(
    lines: list[Curve], unit: str, runs: Sequence[tuple[Run, bool]], found: Sequence[Series], key: str, name: str
) -> None:
    sizes = sorted({point.n for line in found for point in line.points})
    figure = curves(lines, x_title=_("tokens n"), y_title=unit, log_x=True, log_y=True, x_ticks=sizes, height=420)
    if name == "ratio":
        level(figure, 1.0)
    told = _("Lines: {what} against the number of tokens", what=sides().get(name, _("time")))
    chart.show(
        stamped(figure, [part for run, on in runs for part in stamp_lines(run, live=on)]),
        key=key,
        name=f"timing-{name}",
        alt=told,
    )


def _row(line: Series) -> dict[str, object]:
    last = line.points[-1]
    low, middle, high = last.quartiles
    sizes = [point.n for point in line.points]
    time, work = (
        growth(sizes, [p.quartiles[1] for p in line.points]),
        growth(sizes, [p.multiply_adds for p in line.points]),
    )
    at_last = line.ratios[-1].middle if line.ratios and line.ratios[-1].n == last.n else None
    return {
        _("variant"): line.name,
        _("run"): _("live") if line.live else _("recorded"),
        _("faster from"): "" if line.is_reference else told(line),
        _("time ∝ n^"): time and time.exponent,
        "R²": time and time.r2,
        _("work ∝ n^"): work and work.exponent,
        _("at n"): last.n,
        _("ms"): middle,
        _("quartiles (ms)"): between(low, high, ".3g"),
        _("× softmax"): at_last,
        _("peak MiB"): last.peak_bytes / MIB,
        _("multiply-adds"): last.multiply_adds,
        _("by its formula"): last.promised,
        _("per second"): last.multiply_adds / middle * 1e3,
    }


def _columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    large = number(format="compact")
    return {
        **dict.fromkeys((_("time ∝ n^"), _("work ∝ n^"), _("× softmax")), number(format="%.2f")),
        **dict.fromkeys((_("multiply-adds"), _("by its formula"), _("per second")), large),
        "R²": number(format="%.3f"),
        _("ms"): number(format="%.3g"),
        _("peak MiB"): number(format="%.1f"),
        _("faster from"): st.column_config.TextColumn(width=225),
    }


def _notes(run: Run, live: bool) -> None:
    chosen = {attention.key: name(attention) for attention in subjects()}
    for left in run.left_out:
        who = chosen.get(left.variant.partition("~")[0])
        if who:
            st.caption(
                ":material/block: "
                + _(
                    "{name} ({run}) is left out from {n:,} tokens on: {reason}",
                    name=literal(who),
                    run=_("live") if live else _("recorded"),
                    n=left.n,
                    reason=literal(_(left.reason)),
                )
            )


def _csv(found: Sequence[Series]) -> bytes:
    header = (
        "variant",
        "run",
        "device",
        "threads",
        "torch",
        "date",
        "mode",
        "causal",
        "dtype",
        "heads",
        "head size",
        "tokens",
        "sample",
        "ms",
        "multiply-adds",
        "multiply-adds by formula",
        "peak bytes",
    )
    rows = []
    for line in found:
        at, spec = line.run.stamp, line.run.spec
        for p in line.points:
            rows += [
                [
                    line.word,
                    "live" if line.live else "recorded",
                    at.device,
                    at.threads,
                    at.torch,
                    at.date,
                    spec.mode,
                    spec.causal,
                    spec.dtype,
                    spec.heads,
                    spec.head_size,
                    p.n,
                    i,
                    ms,
                    p.multiply_adds,
                    p.promised,
                    p.peak_bytes,
                ]
                for i, ms in enumerate(p.ms)
            ]
    return takeaway.to_csv(header, rows)
