"""The results of timing runs: sentence, charts, table and download."""

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.lines import ends
from app.figures.lines.curves import WIDTH, Curve, curves
from app.figures.lines.machine_stamp import add_machine_stamp
from app.figures.theme import GREY, SERIES, add_line
from app.jobs.timing_runs import Series, crossing_text, stamp_lines, summary_text
from app.ui import chart, export, palette
from app.ui.about import what_is_counted
from app.words.i18n import N_, _, _n, clauses, enumeration, escape_markdown, paragraph
from app.words.labels import label
from attention_core.benchmarking.full_matrix_mask import Masked, attention_from_word
from attention_core.benchmarking.run_file import recorded
from attention_core.benchmarking.run_records import Run, Skipped, samples
from attention_core.benchmarking.run_summary import Overtaking, growth, of_variant, overtaking, ratios
from attention_core.experiments.timing_length import unfinished
from attention_core.formatting import MIB, between, format_interpolated
from pages.timing.options import TimingOptions, subjects
from pages.timing.words import gain, growth_of_softmax, least_memory, masking, other_device, slow_start, starting_time

HEIGHT = 350
"""Height in pixels of a chart without its stamp; with the sentence above, the chart fits a projector's screen."""
NARROW = 250
"""Width in pixels of the lines on a phone."""
NEAR = 1.5
"""Ratio of two lengths up to which their labels would overlap."""
TITLES = {
    "ratio": N_("Time relative to softmax"),
    "memory": N_("Peak memory of one call"),
    "work": N_("Multiply-adds of one call"),
}
"""Titles of the charts that can be shown next to the time chart."""
UNITS = {"ratio": N_("× softmax's time"), "memory": N_("MiB beyond the inputs"), "work": N_("multiply-adds, counted")}
"""Their axis titles."""


def show(live: Run | None, other: Run | None, places: Sequence[DeltaGenerator], key: str) -> None:
    """Draw the results of the live run and of the recorded run.

    Args:
        live: run on this machine; None without one.
        other: the chosen recorded run; None without one.
        places: empty elements for the summary, the time chart and the second chart; the table is drawn below them.
        key: beginning of the keys of the elements.
    """
    summary, above, below = places
    runs = [(run, on) for run, on in ((live, True), (other, False)) if run is not None]
    found = [line for run, on in runs for line in series(run, live=on)]
    if not found:
        st.info(_("No measurements yet. Press “Run on this machine”."), icon=":material/timer:")
        return
    first = [line for line in found if line.live] or found
    fast = gain(first)
    summary.markdown(paragraph(summary_text(first), growth_of_softmax(first) if fast else "", fast))
    with above.container():
        times = [curve(line, [(p.n, *p.quartiles) for p in line.points], found) for line in found]
        crossed = crossovers(found, narrow=chart.is_narrow())
        _chart([*times, *crossed], _("time of one call (ms)"), runs, found, f"{key}.time", "time")
        settings = [text for run, on in runs for text in other_settings(run, live=on)]
        causes = slow_start(first), starting_time(first), least_memory(first), masking(first)
        if texts := list(filter(None, (*causes, other_device(found, _on_another_device(runs)), *settings))):
            st.markdown("  \n".join(texts))
    with below.container():
        side = TimingOptions.side.value
        if drawn := side_lines(side, found):
            _chart(drawn, _(UNITS[side]), runs, found, f"{key}.{side}", side)
        else:
            st.info(_("Add a variant to compare its time with softmax's time."))
    names = {attention.key: name(attention) for attention in subjects()}
    sentences = [each for run, on in runs for each in (*left_out(run, names, live=on), *not_measured(run, live=on))]
    if sentences:
        st.caption("  \n".join(f":material/block: {each}" for each in sentences))
    _show_table(found, f"{key}.table", is_last=key.endswith("end"))


def _show_table(found: Sequence[Series], key: str, *, is_last: bool) -> None:
    """Draw the table at one length, and, below the last drawing of a run, its controls and the download."""
    sizes = sorted({p.n for line in found for p in line.points})
    common = [n for n in sizes if all(n in {p.n for p in line.points} for line in found)]
    n = TimingOptions.at.value if TimingOptions.at.value in sizes else max(common or sizes)
    rows = [row(line, n) for line in found]
    shown = list(rows[0]) if TimingOptions.columns.value else first_columns(n)
    st.dataframe(rows, hide_index=True, key=key, column_config=_columns(n), column_order=shown)
    if text := empty_cells(rows, shown, n):
        st.caption(text)
    if TimingOptions.columns.value:
        st.caption(what_is_counted())
    if is_last:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            TimingOptions.at.draw_with_options(sizes, n, key="timing.at", format_func="{:,}".format, width=120)
            TimingOptions.columns.draw()
            export.download(_("Numbers (CSV)"), lambda: csv(found), "timing.csv")


def _on_another_device(runs: Sequence[tuple[Run, bool]]) -> list[Series]:
    """Return the series of the first recorded run of the same mode on a device that no shown run was measured on."""
    devices, spec = {run.stamp.device for run, _live in runs}, runs[0][0].spec
    for run in recorded().values():
        if (run.spec.mode, run.spec.causal) == (spec.mode, spec.causal) and run.stamp.device not in devices:
            return series(run, live=False)
    return []


def series(run: Run, *, live: bool) -> list[Series]:
    """Return the timed variants' series in a run, with the chosen settings if measured, else with the run's own."""
    found: list[Series] = []
    for attention in subjects():
        same = [word for word in run.spec.variants if word.partition("~")[0] == attention.key]
        word = attention.word if attention.word in same else next(iter(same), None)
        if word is not None and (points := of_variant(run, word)):
            own = attention_from_word(word)
            found.append(
                Series(
                    run=run,
                    word=word,
                    name=name(own),
                    # Full attention under a variant's mask has the colour of that variant.
                    colour=palette.place(attention.variant.key),
                    live=live,
                    points=points,
                    masked=own if isinstance(own, Masked) else None,
                    ratios=ratios(run, word),
                )
            )
    return found


def crossovers(found: Sequence[Series], *, narrow: bool = False) -> list[Curve]:
    """Return a large marker where each variant overtakes softmax; tooltips have both times.

    Args:
        found: series on the page.
        narrow: whether there is only room for the lengths, without names.
    """
    places = [(line, at) for line in found if not line.masked and (at := overtaking(line.run, line.word))]
    rising = sorted(range(len(places)), key=lambda i: places[i][1].tokens)
    names = ["" if narrow else line.name.partition(" · ")[0] for line, _at in places]
    labels = crossing_labels([(places[i][1].tokens, names[i]) for i in rising])
    texts = dict(zip(rising, labels, strict=True))
    first = next(filter(None, labels), "")
    sizes = sorted(point.n for line in found for point in line.points)
    return [
        Curve(
            _("{name}: crossover", name=line.name),
            [at.tokens],
            [at.ms],
            colour=line.colour,
            dash="solid" if line.live else "dash",
            group=line.name,
            hollow=True,
            size=15,
            name_at_end=False,
            notes=[crossover_in_words(line.name, at)],
            texts=[texts[i]],
            text_position=_label_side(texts[i], at.tokens, sizes, is_first=texts[i] == first, narrow=narrow),
        )
        for i, (line, at) in enumerate(places)
    ]


def _label_side(text: str, tokens: float, sizes: Sequence[int], *, is_first: bool, narrow: bool) -> str:
    """Return where the label of a crossing is: above to the left if there is room, else below to the right.

    The first label is below the lines in the left half, because it would cover the line of a slow start.
    """
    share = math.log(tokens / sizes[0]) / math.log(sizes[-1] / sizes[0])
    room = share * (NARROW if narrow else WIDTH)
    return "bottom right" if ends.text_width(text) > room or (is_first and share < 0.5) else "top left"


def crossing_labels(places: Sequence[tuple[float, str]]) -> list[str]:
    """Return the text at each crossing. The last one of neighbouring crossings has the text of all of them.

    Args:
        places: length and short name of each crossing, by ascending length; an empty name is left out.
    """
    near, texts = list[tuple[float, str]](), list[str]()
    for place, following in zip_longest(places, places[1:]):
        near.append(place)
        if following is not None and following[0] <= NEAR * place[0]:
            texts.append("")
            continue
        lengths = enumeration(dict.fromkeys(format_interpolated(n) for n, _name in near))
        names = enumeration(dict.fromkeys(name for _n, name in near if name))
        if names:
            texts.append(_("{names}: faster from {n} tokens", names=names, n=lengths))
        else:
            texts.append(_("faster from {n} tokens", n=lengths))
        near = []
    return texts


def crossover_in_words(name: str, at: Overtaking) -> str:
    """Return where a variant overtakes softmax, and both times at the two nearest lengths, as HTML for Plotly."""
    sentences = [
        _("{n:,} tokens: {own:.3g} ms, softmax {full:.3g} ms", n=n, own=own, full=full)
        for n, own, full in (at.before, at.after)
    ]
    return "<br>".join(
        [_("{name} becomes faster than softmax at {n} tokens", name=name, n=format_interpolated(at.tokens)), *sentences]
    )


def name(attention: ac.Attention) -> str:
    """Return the name on screen of a timed variant or mask."""
    if isinstance(attention, Masked):
        return _("{name}, as a mask", name=label(attention))
    return label(attention)


def side_lines(side: str, found: Sequence[Series]) -> list[Curve]:
    """Return the curves of the chart next to the time chart."""
    if side == "ratio":
        return [
            curve(line, [(r.n, r.low, r.middle, r.high) for r in line.ratios], found)
            for line in found
            if line.ratios and not line.is_reference
        ]
    values = {"memory": lambda p: p.peak_bytes / MIB, "work": lambda p: p.multiply_adds}[side]
    return [curve(line, [(p.n, y := values(p), y, y) for p in line.points], found) for line in found]


def curve(line: Series, values: Sequence[tuple[float, float, float, float]], found: Sequence[Series]) -> Curve:
    """Return a variant's curve: dotted for a mask, hollow if recorded, and also dashed if there is a live run."""
    solid = {other.name for other in found if other.live}
    x, low, middle, high = zip(*values, strict=True)
    # If two runs are drawn, only the one on this machine ("live") has bands, since bands of two runs would overlap.
    banded = low != high and (line.live or not solid)
    dash = ("dot", "dashdot") if line.masked else ("solid", "dash")
    return Curve(
        line.name,
        x,
        [y or None for y in middle],
        low=low if banded else None,
        high=high if banded else None,
        colour=line.colour,
        dash=dash[bool(solid) and not line.live],
        group=line.name,
        name_at_end=line.live or line.name not in solid,
        label=end_name(line),
        hollow=not line.live,
    )


def end_name(line: Series) -> str:
    """Return the label at a curve's end: the variant as measured, and whether its run is incomplete."""
    title = _("{name} (fused\N{NO-BREAK SPACE}kernel)", name=line.name) if line.is_reference else line.name
    return _("{name}, so far", name=title) if unfinished(line.run) else title


def _chart(
    lines: list[Curve], unit: str, runs: Sequence[tuple[Run, bool]], found: Sequence[Series], key: str, name: str
) -> None:
    sizes = sorted({point.n for line in found for point in line.points})
    figure = curves(lines, x_title=_("tokens n"), y_title=unit, log_x=True, log_y=True, x_ticks=sizes, height=HEIGHT)
    if name == "ratio":
        add_line(figure, y=1.0, color=SERIES[GREY], width=1.5, dash="dot")
    alone = len({line.live for line in found}) == 1
    text = _("Lines: {what} against the number of tokens", what=_(TITLES.get(name, N_("Time of one call"))))
    chart.show(
        add_machine_stamp(
            figure, [stamp_lines(run, live=on, alone=alone) for run, on in runs], narrow=chart.is_narrow()
        ),
        key=key,
        name=f"timing-{name}",
        alt=text,
    )


def row(line: Series, n: int) -> dict[str, object]:
    """Return a row of the table: the results at one length, and the growth of time and work."""
    sizes = [point.n for point in line.points]
    time = growth(sizes, [p.quartiles[1] for p in line.points])
    work = growth(sizes, [p.multiply_adds for p in line.points])
    at = next((point for point in line.points if point.n == n), None)
    low, middle, high = at.quartiles if at else (math.nan,) * 3
    return {
        _("variant"): line.name,
        _("run"): _("live") if line.live else _("recorded"),
        _("faster from"): "—" if line.is_reference else crossing_text(line),
        _at(n): at and middle,
        _("× softmax"): next((ratio.middle for ratio in line.ratios if ratio.n == n), None),
        _("peak MiB"): at and at.peak_bytes / MIB,
        _("time ∝ n^"): time and time.exponent,
        "R²": time and time.r2,
        _("work ∝ n^"): work and work.exponent,
        _("quartiles (ms)"): at and between(low, high, ".3g"),
        _("multiply-adds"): at and at.multiply_adds,
        _("by formula"): at and at.promised,
        _("per second"): at and at.multiply_adds / middle * 1e3,
    }


def _at(n: int) -> str:
    return _("ms at n = {n:,}", n=n)


def first_columns(n: int) -> list[str]:
    """Return the columns of the table that are shown initially."""
    return [_("variant"), _("run"), _("faster from"), _at(n), _("× softmax"), _("peak MiB")]


def empty_cells(rows: Sequence[Mapping[str, object]], shown: Sequence[str], n: int) -> str:
    """Return why some cells of the table are empty, in one sentence; empty if no cell is."""
    short = _("needs at least two lengths")
    why = {
        _("faster from"): _("needs softmax"),
        _at(n): _("not measured at this length"),
        _("× softmax"): _("needs softmax at this length"),
        _("time ∝ n^"): short,
        "R²": short,
        _("work ∝ n^"): short,
        _("by formula"): _("known only for a forward pass"),
    }
    reasons: dict[str, list[str]] = {}
    for column, reason in why.items():
        if column in shown and any(row[column] in (None, "") for row in rows):
            reasons.setdefault(reason, []).append(column)
    text = clauses(
        _("{names} ({reason})", names=enumeration(columns), reason=reason) for reason, columns in reasons.items()
    )
    return _("Empty cells: {reasons}.", reasons=text) if text else ""


def _columns(n: int) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        **dict.fromkeys((_("time ∝ n^"), _("work ∝ n^"), _("× softmax")), number(format="%.2f")),
        **dict.fromkeys((_("multiply-adds"), _("by formula"), _("per second")), number(format="compact")),
        "R²": number(format="%.3f"),
        _at(n): number(format="%.3g"),
        _("peak MiB"): number(format="%.3g"),
        _("faster from"): st.column_config.TextColumn(width=250),
    }


def left_out(run: Run, names: Mapping[str, str], *, live: bool) -> list[str]:
    """Return which chosen variants were not measured from some length on and why, in one sentence per reason.

    Args:
        run: the run.
        names: names of the chosen variants, by key.
        live: whether the run was made on this machine in this session.
    """
    missing: dict[tuple[int, str], list[str]] = {}
    for left in run.left_out:
        if (key := left.variant.partition("~")[0]) in names:
            missing.setdefault((left.n, _reason(run, left)), []).append(escape_markdown(names[key]))
    return [
        _n(
            "There is no {run} measurement of {names} at {tokens:,} tokens or more. Reason: {reason}",
            "There are no {run} measurements of {names} at {tokens:,} tokens or more. Reason for each variant: "
            "{reason}",
            n=len(gathered),
            names=enumeration(gathered),
            run=_("live") if live else _("recorded"),
            tokens=tokens,
            reason=escape_markdown(reason),
        )
        for (tokens, reason), gathered in missing.items()
    ]


def _reason(run: Run, left: Skipped) -> str:
    """Return why a variant was not measured, in one sentence."""
    variant = attention_from_word(left.variant).variant
    if run.spec.mode != "decode" and run.spec.causal and variant.causal_reason:
        # A recorded file has the words of its day, which the catalogue may no longer have.
        return _("{name} cannot be causal: {reason}", name=_(variant.title), reason=_(variant.causal_reason))
    return _(left.reason, **left.fields)


def words_of(run: Run) -> dict[str, list[str]]:
    """Return the words that a run measured, by the variant's key."""
    found: dict[str, list[str]] = {}
    for word in run.spec.variants:
        found.setdefault(word.partition("~")[0], []).append(word)
    return found


def not_measured(run: Run, *, live: bool) -> list[str]:
    """Return which chosen variants a run did not measure, in at most one sentence; a mask only if it was chosen.

    Args:
        run: the run.
        live: whether the run was made on this machine in this session.
    """
    measured = words_of(run)
    missing = [
        escape_markdown(name(each))
        for each in subjects()
        if each.key not in measured and not (isinstance(each, Masked) and TimingOptions.masked.value is None)
    ]
    where = _("the live run") if live else _("the recorded run")
    return [_("{names}: not measured in {run}.", run=where, names=enumeration(missing))] if missing else []


def other_settings(run: Run, *, live: bool) -> list[str]:
    """Return which variants a run measured with other settings than the chosen ones, in at most one sentence."""
    measured = words_of(run)
    others = [
        _(
            "{own} instead of {chosen}",
            own=f"**{escape_markdown(name(attention_from_word(words[0])))}**",
            chosen=escape_markdown(name(each)),
        )
        for each in subjects()
        if (words := measured.get(each.key)) and each.word not in words
    ]
    if not others:
        return []
    text = _("The live run measured {names}.") if live else _("The recorded run measured {names}.")
    more = _("To measure your settings, press “Run on this machine”.")
    return [":material/info: " + paragraph(_(text, names=clauses(others)), more)]


def csv(found: Sequence[Series]) -> bytes:
    """Return every sample with its device, settings and length, as CSV."""
    rows = [row for line in found for row in samples(line.run, line.word, origin="live" if line.live else "recorded")]
    return export.to_csv(list(rows[0]), (list(row.values()) for row in rows))
