"""The time of each algorithm: a button that starts a measurement and ends it, and what it has found so far."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import streamlit as st

from app import compute
from app.text import _
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_modes import ROUNDS, AgreementTask, CostTask
from attention_core.experiments.task import Row

JOB, STOPPED, TIMES = "causal.job", "causal.stopped", "causal.times"


@dataclass(eq=False)
class Job:
    """A measurement under way, or one that was stopped; a script that takes over goes on with its samples."""

    tasks: tuple[CostTask, ...]
    samples: Iterator[Row]
    rows: list[Row] = field(default_factory=list)


def show_button(tasks: tuple[CostTask, ...]) -> list[Row]:
    """Draw the button, which starts a measurement and ends it; the samples of these tasks, once there are some."""
    state = st.session_state
    job: Job | None = state.get(JOB)
    if job is not None and job.tasks != tasks:
        _end()  # the controls ask for something else now
        job = None
    # One button under one key: another in its place would stay on screen until the measurement has ended.
    if job is None:
        st.button(
            _("Measure times"),
            icon=":material/timer:",
            key="causal.measure",
            type="primary",
            on_click=_begin,
            args=(tasks,),
        )
        stopped: Job | None = state.get(STOPPED)
        more = st.empty()
        if stopped is not None and stopped.tasks == tasks:
            more.button(
                _("Continue"), icon=":material/play_arrow:", key="causal.continue", on_click=_go_on, args=(stopped,)
            )
    else:
        st.button(_("Stop"), icon=":material/stop:", key="causal.measure", type="primary", on_click=_end)
        st.empty()  # where the other button was
        _take(job)
        _end()
        state[STOPPED] = None  # it has come to its end
        st.rerun()
    measured, rows = state.get(TIMES, ((), []))
    return list(rows) if measured == tasks else []


def _take(job: Job) -> None:
    bar = st.progress(0.0, _("Waiting for the machine …"))
    efforts = {(task.way, task.n): effort(task) for task in job.tasks}
    for row in compute.timed(job.samples):
        job.rows.append(row)  # before anything that ends a script which another has replaced
        done = sum(efforts[str(r["way"]), int(r["n"] or 0)] for r in job.rows) / sum(efforts.values())
        bar.progress(min(1.0, done / ROUNDS), _("Round {i} of {all}", i=int(row["round"] or 0) + 1, all=ROUNDS))


def _begin(tasks: tuple[CostTask, ...]) -> None:
    st.session_state[JOB], st.session_state[STOPPED] = Job(tasks, causal_modes.timed(tasks)), None


def _go_on(job: Job) -> None:
    st.session_state[JOB], st.session_state[STOPPED] = job, None


def rounds(times: Sequence[Row], tasks: Sequence[CostTask]) -> int:
    """Whole rounds that there are of a measurement."""
    counts = Counter((str(row["way"]), int(row["n"] or 0)) for row in times)
    return min((counts[task.way, task.n] for task in tasks), default=0)


def _end() -> None:
    """What has been measured stays."""
    job: Job | None = st.session_state.get(JOB)
    st.session_state[JOB] = None
    if job is not None and job.rows:
        st.session_state[TIMES], st.session_state[STOPPED] = (job.tasks, job.rows), job


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
