"""The results of timing runs: sentences, charts and table."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.jobs.timing_runs import Series, summary_text
from app.ui import chart, palette
from app.words.i18n import _, paragraph
from attention_core.benchmarking.full_matrix_mask import Masked, attention_from_word
from attention_core.benchmarking.run_file import recorded
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.run_summary import of_variant, ratios
from pages.timing import charts, missing, table
from pages.timing.options import TimingOptions, subjects
from pages.timing.words import (
    gain,
    growth_of_softmax,
    least_memory,
    masking,
    name,
    other_device,
    slow_start,
    starting_time,
)


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
    summary.markdown(paragraph(summary_text(first), fast, other_device(first, _on_another_device(runs))))
    with above.container():
        times = [charts.curve(line, [(p.n, *p.quartiles) for p in line.points], found) for line in found]
        crossed = charts.crossovers(found, narrow=chart.is_narrow())
        charts.draw([*times, *crossed], _("time of one call (ms)"), runs, found, f"{key}.time", "time")
        settings = [text for run, on in runs for text in missing.other_settings(run, live=on)]
        growth = growth_of_softmax(first) if fast else ""
        causes = growth, slow_start(first), starting_time(first), least_memory(first), masking(first)
        if texts := list(filter(None, (*causes, *settings))):
            st.markdown("  \n".join(texts))
    with below.container():
        side = TimingOptions.side.value
        if drawn := charts.side_lines(side, found):
            charts.draw(drawn, _(charts.UNITS[side]), runs, found, f"{key}.{side}", side)
        else:
            st.info(_("Add a variant to compare its time with softmax's time."))
    names = {attention.key: name(attention) for attention in subjects()}
    sentences = [
        each
        for run, on in runs
        for each in (*missing.left_out(run, names, live=on), *missing.not_measured(run, live=on))
    ]
    if sentences:
        st.caption("  \n".join(f":material/block: {each}" for each in sentences))
    table.show(found, f"{key}.table", is_last=key.endswith("end"))


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
