"""The line charts of the Learn page: accuracy during training, on longer sequences, and with more items to remember."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from app.figures.lines.curve import Curve, guide
from app.figures.lines.curves import WIDTH, curves
from app.figures.lines.spread import QUANTILES, RANGE, spread
from app.ui import chart
from app.words.i18n import N_, _, _n, enumeration, paragraph
from app.words.labels import axis_title
from attention_core.experiments.learning import MEASURE_INTERVAL, LearnRow, length_with_items
from attention_core.formatting import percent
from attention_core.learning.defaults import TEST_ITEMS
from attention_core.learning.tasks import task as task_of
from pages.learn import gaps, generalisation_words, shared_runs, words
from pages.learn.options import LearnOptions
from pages.learn.outcomes import THRESHOLD, Outcome, has_threshold, numbers_stored, outcomes

HEIGHT = 306
HALF, HALF_COLUMN = 400, 480
"""Typical width of the axis of a chart that shares its row with another chart; smallest width of its column."""
NAME_HEIGHTS = (0.62, 0.42, 0.75, 0.85)
"""Accuracies at which the name of a variant that learned the task may be placed next to its line."""
MAX_SHORT, LOW_TOP = 0.55, 0.62
"""Largest accuracy of a chart whose axis ends at about 60% instead of 100%; the upper end of this axis."""
AXES = {
    "accuracy": N_("correct answers"),
    "loss": N_("loss in nats per answer"),
    "step": N_("training steps"),
    "seconds": N_("CPU seconds of training"),
    "length": N_("tokens in a sequence"),
    "items": N_("key–value pairs (tokens)"),
}
"""Titles of the axes by the measured quantity."""


def show_race(rows: Sequence[LearnRow], key: str) -> None:
    """Draw each variant's accuracy or loss during training, and its accuracy with more pairs if the task has these."""
    spec = rows[0].spec
    task = task_of(spec.model.task)
    chance = task.chance(spec.length, spec.items)
    # False for selective copying: its answers are in the sequence, but its ``chance`` is that of guessing any symbol.
    from_sequence = task.shows_answers and chance > 1 / task.classes
    # A model that is still training will be tested later, so its chart has a place already. A recorded model may have
    # no tests.
    if task.key in TEST_ITEMS and any(each.test_points("items") or not each.is_trained for each in outcomes(rows)):
        with st.grid("auto", min_column_width=HALF_COLUMN, key=f"learn.halves.{key}"):
            with st.container(gap=None):
                st.markdown(_("**During training**, with {n} pairs", n=spec.items))
                _draw_race(rows, key, chance, from_sequence=from_sequence, width=HALF)
            with st.container(gap=None):
                st.markdown(_("**After training** with {n} pairs, tested with more", n=spec.items))
                _draw_tests(rows, f"race.{key}", by="items", width=HALF)
    else:
        _draw_race(rows, key, chance, from_sequence=from_sequence, width=WIDTH)
    note = words.threshold_note(from_sequence=from_sequence) if has_threshold(task.key) else ""
    _explain(rows, definition=paragraph(note, words.fastest_by_seed(outcomes(rows))))


def _draw_race(rows: Sequence[LearnRow], key: str, chance: float, *, from_sequence: bool, width: float) -> None:
    """Draw the chart of accuracy or loss during training.

    Args:
        rows: the measurements.
        key: suffix of the element's key.
        chance: the accuracy of guessing.
        from_sequence: whether a guess is one of the answers in the sequence.
        width: typical width of the axis in pixels.
    """
    measure, by = LearnOptions.measure.value, LearnOptions.by.value
    results, spec = outcomes(rows), rows[0].spec
    lines = [_line(each, measure, by) for each in results]
    if measure == "accuracy":
        # The horizontal reference lines end at the last planned step, so that the axis does not change while curves
        # grow.
        x_end = spec.steps if by == "step" else max((x for line in lines for x in line.x), default=0.0) or 1.0
        text = words.guess_label(chance, from_sequence=from_sequence)
        # Untrained models guess, so all curves start near this line. Its label is at its other end.
        lines.append(replace(_guide(text, (0.0, x_end), (chance, chance)), texts=["", text]))
        if has_threshold(spec.model.task):
            threshold = _guide(_("learned = {share}", share=percent(THRESHOLD)), (0.0, x_end), (THRESHOLD, THRESHOLD))
            # The label is below its line: above, it would touch the line at 100%.
            lines.append(replace(threshold, text_position="bottom right"))
    learned = words.learned_steps(results)
    _draw(lines, x=by, y=measure, key=f"learn.race.{key}", name="learn", learned=learned, width=width)


def _guide(name: str, x: Sequence[float], y: Sequence[float]) -> Curve:
    """Return a reference line with its name at its start, away from the names of the variants."""
    return replace(guide(name, x, y), name_at_end=False, texts=[name, *[""] * (len(x) - 1)])


def _line(outcome: Outcome, measure: str, by: str) -> Curve:
    """Return a variant's curve.

    Args:
        outcome: the measurements of the variant.
        measure: the vertical axis, "accuracy" or "loss".
        by: the horizontal axis, "step" or "seconds"; with several seeds, the mean of their CPU seconds at a step.
    """
    steps = sorted({each.row.step for each in outcome.rows})
    points = ((each.row.step, getattr(each.row, measure)) for each in outcome.rows)
    summary = spread(points, quantiles=_edges(outcome))
    seconds = {
        step: sum(own) / len(own)
        for step in steps
        for own in [[each.row.seconds for each in outcome.rows if each.row.step == step]]
    }
    line = summary.curve(outcome.title, outcome.colour, band=len({each.row.seed for each in outcome.rows}) > 1)
    x = line.x if by == "step" else [seconds[int(step)] for step in line.x]
    # Lines that reach 100% end in the same place, so each name is placed where its line rises.
    heights = NAME_HEIGHTS if measure == "accuracy" and outcome.learned_at else ()
    return replace(line, name=outcome.name, x=x, label=outcome.title, markers=False, name_heights=heights)


def _edges(outcome: Outcome) -> Sequence[float]:
    """Return three quantiles over the seeds: for the lower edge of the band, the line and the upper edge."""
    return RANGE if len({each.row.seed for each in outcome.rows}) <= words.MAX_FEW_RUNS else QUANTILES


def show_tests(rows: Sequence[LearnRow], key: str, *, by: str) -> None:
    """Draw the accuracy of the trained models on longer sequences (``by="length"``) or with more items to remember."""
    if text := gaps.no_tests(task_of(rows[0].spec.model.task), by=by):
        st.info(text)
    elif by == "items":
        _draw_memory(rows, key)
    elif _draw_tests(rows, key, by=by, width=WIDTH):
        _explain(rows)


def _draw_memory(rows: Sequence[LearnRow], key: str) -> None:
    """Draw the accuracy with most pairs against the numbers that a layer stores, one point per variant."""
    tests = [(each, *test) for each in outcomes(rows) if (test := each.largest_test("items"))]
    if not tests:
        st.info(gaps.missing_tests(outcomes(rows)), icon=":material/timer:")
        return
    spec, pairs = rows[0].spec, max(pairs for _each, pairs, _share in tests)
    length = length_with_items(task_of(spec.model.task), spec.length, pairs)
    stored = [
        fixed + length * grown for fixed, grown in (numbers_stored(each.rows[0].spec.model) for each, *_ in tests)
    ]
    points = [
        Curve(
            each.name,
            [size],
            [share],
            colour=each.colour,
            name_at_end=False,
            size=9,
            texts=[each.title],
            text_position="middle left" if size == max(stored) > min(stored) else "middle right",
        )
        for (each, _pairs, share), size in zip(tests, stored, strict=True)
    ]
    st.markdown(_("**With {n} pairs**, by memory", n=pairs))
    title = axis_title(_("numbers that a layer stores after {n} tokens", n=length), log=True)
    key = f"learn.memory.{key}"
    _draw(points, x="memory", y="accuracy", key=key, name="learn-memory", x_title=title, log_x=True, width=WIDTH)
    st.caption(
        _n(
            "Each point is {n} training run.",
            "Each point is the median of {n} training runs with different seeds.",
            n=len({each.row.seed for each in rows}),
        )
    )


def _draw_tests(rows: Sequence[LearnRow], key: str, *, by: str, width: float) -> list[Outcome]:
    """Draw the chart of the accuracy of trained models, or a message without tests; return the tested variants.

    On longer sequences, a dashed line shows the same variant with the other position encoding.
    """
    results = [each for each in outcomes(rows) if each.test_points(by)]
    if not results:
        st.info(gaps.missing_tests(outcomes(rows)), icon=":material/timer:")
        return []
    spec = rows[0].spec
    task = task_of(spec.model.task)
    lines = [_test_line(each, by) for each in results]
    x = sorted({place for line in lines for place in line.x})
    ticks: dict[float, str] = {place: f"{place:,.12g}" for place in x}
    if by == "length":
        others = generalisation_words.matching(results, outcomes(shared_runs.counterparts(rows)))
        lines += [_line_of_other_positions(other) for _each, other in others]
        guessing = _guide(_("guessing"), x, [task.chance(int(n), spec.items) for n in x])
        lines.append(replace(guessing, text_position="bottom right"))
    else:
        # The accuracy of guessing falls, so there is room for its label below and to the left of the second point.
        guessing = guide(_("guessing"), x, [task.chance(spec.length, int(n)) for n in x])
        texts = ["", _("guessing"), *[""] * len(x)][: len(x)]
        lines.append(replace(guessing, name_at_end=False, texts=texts, text_position="bottom left"))
        ticks = {n: f"{text}<br>({length_with_items(task, spec.length, int(n))})" for n, text in ticks.items()}
    name = f"learn-{by}"
    _draw(lines, x=by, y="accuracy", key=f"learn.{by}.{key}", name=name, ticks=ticks, log_x=by == "length", width=width)
    return results


def _test_line(outcome: Outcome, by: str) -> Curve:
    """Return the line of a variant's accuracy in the tests, with the band of its runs."""
    line = spread(outcome.test_points(by), quantiles=_edges(outcome)).curve(outcome.name, outcome.colour)
    return replace(line, label=outcome.title)


def _line_of_other_positions(outcome: Outcome) -> Curve:
    """Return the dashed line of a variant whose models have another position encoding than the models on the page."""
    is_rotary = outcome.rows[0].spec.model.positions == "rotary"
    name = _(N_("{name} with RoPE") if is_rotary else N_("{name} without positions"), name=outcome.title)
    return replace(_test_line(outcome, "length"), name=name, label=name, dash="dash", hollow=True)


def _explain(rows: Sequence[LearnRow], text: str = "", *, definition: str = "") -> None:
    """Draw below a chart what its lines and bands show, with a definition in the tooltip, and another text."""
    seeds = len({each.row.seed for each in rows})
    note = paragraph(words.medians_note(seeds), words.reading_note(seeds))
    st.caption(note, width="content", help=definition or None)
    if text:
        st.caption(text)


def _draw(
    lines: Sequence[Curve],
    *,
    x: str,
    y: str,
    key: str,
    name: str,
    ticks: Mapping[float, str] | None = None,
    log_x: bool = False,
    learned: Sequence[str] = (),
    x_title: str = "",
    width: float,
) -> None:
    if x == "step":
        x_title = _("training steps (measured every {interval} steps)", interval=MEASURE_INTERVAL)
    x_title = x_title or axis_title(_(AXES[x]), log=log_x)
    drawn = [value for line in lines for value in (*line.y, *(line.high or ())) if value is not None]
    largest = max(drawn, default=1.0)
    figure = curves(
        lines,
        x_title=x_title,
        y_title=_(AXES[y]),
        height=HEIGHT,
        top=None if y != "accuracy" else 1.03 if largest > MAX_SHORT else LOW_TOP,
        percent=y == "accuracy",
        form=".0%" if y == "accuracy" else ".3g",
        x_ticks=ticks or (),
        log_x=log_x,
        width=width,
    )
    # A variant's dash only distinguishes variants of the same colour, so it is not needed if all colours differ.
    traces = [trace for trace in figure["data"] if "name" in trace]
    own = [trace["line"] for trace, line in zip(traces, lines, strict=True) if line.dash == "solid"]
    if len({line["color"] for line in own}) == len(own):
        for line in own:
            line["dash"] = "solid"
    alt = _("Lines: {y} against {x}", y=_(AXES[y]), x=x_title)
    if learned:  # Screen readers cannot read the lines.
        alt = paragraph(f"{alt}.", _("These variants learned the task: {names}.", names=enumeration(learned)))
    chart.show(figure, key=key, name=name, alt=alt)
