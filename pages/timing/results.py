"""The results of timing runs on the Timing page: sentences, charts and a table."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.figures.theme import separate_colours
from app.lessons.options import LessonOptions
from app.state import url
from app.ui import navigation, palette
from app.words.i18n import _, paragraph
from app.words.measured_times import Series, faster_finding
from attention_core.benchmarking.full_matrix_mask import MaskedFullAttention, attention_from_word
from attention_core.benchmarking.run_file import recorded_runs
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.run_summary import ratios, variant_points
from pages.timing import charts, missing, table
from pages.timing.memory import memory_sentence
from pages.timing.options import TimingOptions, timed_variants
from pages.timing.words import (
    fused_kernel,
    mask_effects,
    name,
    other_device_note,
    slow_start_cause,
    speedup_sentence,
    start_overhead,
)


def show(live: Run | None, other: Run | None, placeholders: Sequence[DeltaGenerator], key: str) -> None:
    """Draw the results of the live run and of the recorded run.

    Args:
        live: run on this machine; None without one.
        other: the chosen recorded run; None without one.
        placeholders: empty elements for the summary, the time chart and the second chart. The table is below them.
        key: beginning of the keys of the elements.
    """
    summary, above, below = placeholders
    runs = [(run, live_) for run, live_ in ((live, True), (other, False)) if run is not None]
    found = [line for run, live_ in runs for line in series(run, live=live_)]
    if not found:
        st.info(_("No measurements yet. Press “Measure on this server”."), icon=":material/timer:")
        return
    shown = [line for line in found if line.live] or found
    elsewhere, link = _on_another_device(runs)
    finding = faster_finding(shown)
    summary.markdown(finding.text)
    names = {attention.key: name(attention) for attention in timed_variants()}
    sentences = [
        each
        for run, live_ in runs
        for each in (*missing.left_out(run, names, live=live_), *missing.not_measured(run, live=live_))
    ]
    settings = [text for run, live_ in runs for text in missing.other_settings(run, live=live_)]
    with above.container():
        if notes := [*(f":material/block: {each}" for each in sentences), *settings]:
            st.caption("  \n".join(notes))
        times = [charts.curve(line, [(p.n, *p.quartiles) for p in line.points], found) for line in found]
        crossed = charts.crossovers(found)
        charts.show_chart([*times, *crossed], _("time of one call (ms)"), runs, found, f"{key}.time", "time")
        _bullets(
            other_device_note(shown, elsewhere, link),
            paragraph(finding.explanation, speedup_sentence(shown)),
            slow_start_cause(shown),
            start_overhead(shown),
            fused_kernel(shown),
            memory_sentence(shown),
            mask_effects(shown),
        )
        label = f"{_('Faster, but how accurate?')} :primary[{_('See their output error')}]"
        navigation.link("error", label, fields={"fidelity": ["output"]})
    with below.container():
        side = TimingOptions.side.value
        if side_curves := charts.side_lines(side, found):
            charts.show_chart(side_curves, charts.side_title(side, found), runs, found, f"{key}.{side}", side)
        else:
            st.info(_("Add a variant to compare its time with softmax's time."))
    table.show(found, f"{key}.table", is_last=key.endswith("end"))


def _bullets(*sentences: str) -> None:
    st.markdown("\n".join(f"- {text}" for text in sentences if text))


def _on_another_device(runs: Sequence[tuple[Run, bool]]) -> tuple[list[Series], str]:
    """Return the timed variants in a recorded run on a device that no shown run used, and a link to this run.

    The first run with the mode and causality of the shown runs is taken; without one, both results are empty. In a
    lesson, the link is empty, because it would leave the lesson.
    """
    devices, spec = {run.stamp.device for run, _live in runs}, runs[0][0].spec
    for key, run in recorded_runs().items():
        if (run.spec.mode, run.spec.causal) == (spec.mode, spec.causal) and run.stamp.device not in devices:
            link = "#" + url.query_string({TimingOptions.recorded.name: [key]})
            return series(run, live=False), link if LessonOptions.lesson.value is None else ""
    return [], ""


def series(run: Run, *, live: bool) -> list[Series]:
    """Return the results of the timed variants in a run.

    A variant that was not measured with the chosen settings has the first settings with which the run measured it.
    """
    result: list[Series] = []
    colours = separate_colours(palette.index(attention.variant.key) for attention in timed_variants())
    for attention in timed_variants():
        same = [word for word in run.spec.variants if word.partition("~")[0] == attention.key]
        word = attention.word if attention.word in same else next(iter(same), None)
        if word is not None and (points := variant_points(run, word)):
            measured = attention_from_word(word)
            result.append(
                Series(
                    run=run,
                    word=word,
                    name=name(measured),
                    # Full attention under a variant's mask has the colour of that variant.
                    colour=colours[palette.index(attention.variant.key)],
                    live=live,
                    points=points,
                    masked=measured if isinstance(measured, MaskedFullAttention) else None,
                    ratios=ratios(run, word),
                )
            )
    return result
