"""What the Error page shows: a sweep of the chosen variants, drawn as it comes, and its numbers."""

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from app import chart, run, share, takeaway
from app.fidelity.lines import Asked, lines, without_zeros
from app.fidelity.words import captions, definitions, in_one_sentence, measures
from app.figures.curves import Curve, curves
from app.input_panel import Chosen
from app.text import _, literal
from attention_core.experiments import error, error_cost
from attention_core.experiments.error import MEASURES, UNIFORM, ErrorTask
from attention_core.experiments.task import Row
from attention_core.experiments.tradeoff import points
from attention_core.limits import current

HEADROOM = 1.6
"""A linear axis ends at this many times the error of the plain mean: what is worse than that need not be told apart."""


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the input and the variants."""
    return {
        "against": share.choice("budget", "length", "cost"),
        "fidelity": share.choice(*MEASURES),
        "log_error": share.switch(False),
        "price": share.choice("count", "ms"),
    }


def show_options() -> None:
    """Against what the error is drawn, in which terms, and how."""
    views = {"budget": _("budget"), "length": _("length"), "cost": _("cost")}
    terms = {name: title for name, (title, _axis) in measures().items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            _("Error against"), list(views), key="against", format_func=views.__getitem__, required=True
        )
        st.selectbox(_("Measured as"), list(terms), key="fidelity", format_func=terms.__getitem__, width=240)
        st.toggle(_("Log scale"), key="log_error", help=_("Errors of zero leave a logarithmic axis."))
        chart.choose_format()


def show(chosen: Chosen) -> None:
    """Run the sweep that the view needs, draw it as it comes, and offer its numbers."""
    state = st.session_state
    causal: bool = state["causal"]
    for attention in state["variants"]:
        if causal and attention.variant.causal_reason:
            reason = _(attention.variant.causal_reason)
            told = _("{name} cannot be causal: {reason}", name=_(attention.title), reason=reason)
            st.caption(f":material/block: {literal(told)} " + _("It is left out while causal is on."))
    shown = [a for a in state["variants"] if not (causal and a.variant.causal_reason)]
    words = [a.word for a in shown]
    if state["against"] == "length":
        tasks = error.length_tasks(chosen.source, _lengths(chosen), words, head=chosen.head, causal=causal)
    else:
        tasks = error.tasks(chosen.source, chosen.qkv.n, words, head=chosen.head, causal=causal)
    asked = Asked(
        attentions=shown,
        places={a.key: i for i, a in enumerate(state["variants"])},
        against=state["against"],
        measure=state["fidelity"],
        n=chosen.qkv.n,
        d=chosen.qkv.q.shape[-1],
        causal=causal,
        heads=chosen.qkv.heads if chosen.head is None else 1,
        times=_times(chosen, tasks) if state["against"] == "cost" else None,
    )
    rows: list[Row] = run.at_once(
        "error",
        tasks,
        lambda found, key: _draw(asked, found, key),
        key=f"error.{asked.against}",
        effort=lambda task: (task.tokens or 1) ** 2,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if rows:
            takeaway.download(_("Numbers (CSV)"), lambda: _csv(rows, asked.times), "error.csv", "text/csv", "error.csv")
        with st.popover(_("What the words mean"), icon=":material/menu_book:", type="tertiary"):
            st.markdown(definitions())


def _lengths(chosen: Chosen) -> tuple[int, ...]:
    # A sequence that is made can be made longer; a text or a file is as long as it is.
    most = current().matrix_tokens if chosen.source.made else 0
    return error.lengths_to(max(chosen.qkv.n, most))


def _times(chosen: Chosen, tasks: Sequence[ErrorTask]) -> Mapping[str, float] | None:
    """Milliseconds by word if cost is to be time, none before they have been measured; None if it is to be counted."""
    state = st.session_state
    names = {"count": _("counted multiply-adds"), "ms": _("measured time")}
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        price = st.segmented_control(
            _("Cost in"), list(names), key="price", format_func=names.__getitem__, required=True
        )
        if price != "ms":
            return None
        words = tuple(dict.fromkeys(UNIFORM if task.uniform else task.word for task in tasks))
        spec = error_cost.CostSpec(source=chosen.source, words=words, causal=state["causal"])
        measured: run.Run[Row] | None = run.on_button(
            "error_cost",
            spec,
            partial(error_cost.following, spec),
            key="error",
            label=_("Measure times"),
            icon=":material/timer:",
            button="error.measure",
            kind="secondary",
            row=row,
            progress=lambda found: (len(found.rows) / len(words) / error_cost.ROUNDS, _("Measuring …")),
        )
    taken: dict[str, list[float]] = {word: [] for word in words}
    for sample in measured.rows if measured is not None and measured.asked == spec else ():
        taken[str(sample["word"])].append(float(sample["ms"] or 0.0))
    whole = min(map(len, taken.values()), default=0)
    if not whole:
        st.info(_("Press “Measure times”: every point runs on this machine, in {n} rounds.", n=error_cost.ROUNDS))
        return {}
    if whole < error_cost.ROUNDS:
        st.caption(
            _("The times are not complete: {count} of {all} rounds are there.", count=whole, all=error_cost.ROUNDS)
        )
    return {word: statistics.median(ms) for word, ms in taken.items()}


def _draw(asked: Asked, rows: list[Row], key: str) -> None:
    found = points(rows, asked.measure)
    st.markdown(in_one_sentence(asked, found))
    if asked.times == {}:
        return
    drawn, log_y = lines(asked, found), st.session_state["log_error"]
    zeros = [p.middle for p in found if p.variant == UNIFORM and math.isfinite(p.middle)]
    most, heights = HEADROOM * max(zeros, default=0.0), [y for line in drawn for y in line.y if y is not None]
    above = 0 if log_y or not most else sum(y > most for y in heights)
    highest = max(heights, default=0.0)
    axes = {"budget": _("budget: each variant's own knob"), "length": _("tokens"), "cost": _("multiply-adds, one head")}
    x_title = axes[asked.against] if asked.times is None else _("time forward, all heads, ms")
    figure = curves(
        without_zeros(drawn) if log_y else drawn,
        x_title=x_title,
        y_title=measures()[asked.measure][1],
        log_x=True,
        log_y=log_y,
        height=500,
        top=most if above else 1.08 * highest or 1.0,
        x_ticks=_ticks(drawn) if asked.against != "cost" else (),
    )
    told = _("Lines: {measure} against {axis}", measure=measures()[asked.measure][1], axis=x_title)
    chart.show(figure, key=f"{key}.chart", name=f"error-against-{asked.against}", alt=told)
    st.caption("  \n".join(captions(asked, found, above=above)))


def _ticks(drawn: Sequence[Curve]) -> list[float]:
    """Doublings between the ends of the axis, and its end."""
    xs = [x for line in drawn for x in line.x]
    stops = [2.0**i for i in range(math.ceil(math.log2(min(xs))), math.floor(math.log2(max(xs))) + 1)]
    return [x for x in stops if x <= max(xs) / 1.3] + [max(xs)]


def _csv(rows: Sequence[Row], times: Mapping[str, float] | None) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = [[row.get(name) for name in names] + ([times.get(str(row["word"]))] if times else []) for row in rows]
    return takeaway.to_csv([*names, *(["milliseconds"] if times else [])], table)
