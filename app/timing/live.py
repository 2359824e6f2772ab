"""The live run: samples as they come, with progress, time left, and a stop that keeps what is there."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute
from app.sweep import REDRAW
from app.text import _
from attention_core.experiments import timing_length
from attention_core.experiments.task import Row
from attention_core.measure.device import Stamp, stamp
from attention_core.measure.records import Run, gather
from attention_core.measure.timing import TimingSpec

JOB, STOPPED, LIVE, BUTTON = "timing.job", "timing.stopped", "timing.live", "timing.button"


@dataclass(eq=False)
class Job:
    """A run under way, or one that was stopped; a script that takes over from another goes on with its samples.

    Attributes:
        spec: what it measures.
        stamp: where and when.
        samples: those to come.
        begun: the clock's seconds when it began, the time it stood still left out.
        rows: the samples taken.
        stood: the clock's seconds when it was stopped.
    """

    spec: TimingSpec
    stamp: Stamp
    samples: Iterator[Row]
    begun: float
    rows: list[Row] = field(default_factory=list)
    stood: float = 0.0

    def run(self) -> Run:
        """What has been measured so far."""
        return gather(self.spec, self.stamp, self.rows)


def show(spec: TimingSpec, row: DeltaGenerator, draw: Callable[[Run | None, str], None]) -> None:
    """Draw the button and what was measured; while a run is under way, take its samples and draw them as they come.

    Args:
        spec: what a press of the button measures.
        row: where the button and the progress go.
        draw: draws the live run, None where there is none; it is given a key that differs from drawing to drawing.
    """
    state = st.session_state
    job: Job | None = state.get(JOB)
    if job is not None and job.spec != spec:
        stop()  # the controls ask for something else now
        job = None
    stopped: Job | None = state.get(STOPPED)
    # One button under one key: another in its place would stay on screen until the run has ended.
    if job is None:
        row.button(
            _("Run on this machine"),
            icon=":material/play_arrow:",
            key=BUTTON,
            type="primary",
            on_click=_start,
            args=(spec,),
        )
    else:
        row.button(_("Stop"), icon=":material/stop:", key=BUTTON, type="primary", on_click=stop)
    more, bar, chart = row.empty(), row.empty(), st.empty()
    if job is None and stopped is not None and stopped.spec == spec:
        more.button(
            _("Continue"), icon=":material/play_arrow:", key="timing.continue", on_click=_go_on, args=(stopped,)
        )
    if job is not None:
        _take(job, bar, lambda key: _into(chart, draw, job.run(), key))
        stop()
        state[STOPPED] = None  # it has come to its end
        st.rerun()
    done: Run | None = state.get(LIVE)
    same = done is not None and (done.spec.mode, done.spec.causal) == (spec.mode, spec.causal)
    _into(chart, draw, done if same else None, "end")


def stop() -> None:
    """Stop the run; what it has measured stays, and it can go on from there."""
    state = st.session_state
    job: Job | None = state.get(JOB)
    state[JOB] = None
    if job is not None and job.rows:
        job.stood = time.monotonic()
        state[LIVE], state[STOPPED] = job.run(), job


def _go_on(job: Job) -> None:
    job.begun += time.monotonic() - job.stood
    st.session_state[JOB], st.session_state[STOPPED] = job, None


def _take(job: Job, bar: DeltaGenerator, draw: Callable[[str], None]) -> None:
    most, drawn = timing_length.total(job.spec), 0.0
    bar.progress(0.0, _("Waiting for the machine …"))
    for row in compute.timed(job.samples):
        job.rows.append(row)  # before anything that ends a script which another has replaced
        share = _share(job)
        left = (time.monotonic() - job.begun) * (1 - share) / share
        bar.progress(share, _("{i} of {all} samples · about {left:.0f} s left", i=len(job.rows), all=most, left=left))
        if time.monotonic() - drawn > REDRAW:
            draw(str(len(job.rows)))
            drawn = time.monotonic()


def _share(job: Job) -> float:
    """How much of the work is done: a sample weighs as much as its length, the first of each twice for its counting."""
    weights = {n: n for n in job.spec.sizes}
    whole = (job.spec.rounds + 1) * len(job.spec.variants) * sum(weights.values())
    done = sum(weights[int(row["n"] or 0)] * (2 if row["round"] == 0 else 1) for row in job.rows)
    return min(1.0, done / whole)


def _into(place: DeltaGenerator, draw: Callable[[Run | None, str], None], run: Run | None, key: str) -> None:
    with place.container():
        draw(run, key)


def _start(spec: TimingSpec) -> None:
    job = Job(spec, stamp(spec.device), timing_length.run(spec), time.monotonic())
    st.session_state[JOB], st.session_state[STOPPED] = job, None
