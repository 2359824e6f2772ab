"""Runs: long measurements that the visitor can stop and continue, and whose results a page draws as they arrive.

A run consists of the tasks of an experiment, each of which returns rows of results. It starts when the page opens or
when the visitor presses a button. ``dispatch.executor`` decides in which process a task runs.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import Any, Generic, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.jobs import cached, dispatch
from app.jobs.scheduler import TaskStatus
from app.words.i18n import _, _n, escape_markdown, sentence
from attention_core.errors import WorkerError
from attention_core.experiments.task import Task

MIN_REDRAW, MAX_REDRAW = 0.7, 5.0
"""Shortest and longest seconds between two drawings of a growing chart. A redraw costs the browser up to half of the
shortest time. After more than the longest time, a chart appears to be stuck."""
DRAWING_SHARE = 1 / 8
"""The fraction of the time that all runs together may spend on drawing, which blocks all other pages."""
MESSAGE_INTERVAL = 0.1
"""Seconds between two progress messages: cached results arrive by the hundred."""
FIRST_DRAW = 0.2
"""Seconds before the first drawing: cached rows arrive sooner and are drawn once, and computed rows show early."""

BAR_WIDTH, SHORT_BAR_WIDTH = 250, 210
"""Widths in pixels of a progress bar next to a sentence, with and without a count of the results."""

RowT = TypeVar("RowT")


@dataclass(eq=False)
class Run(Generic[RowT]):
    """A visitor's run, in progress or stopped.

    If Streamlit reruns the page during a run, the new script continues the run of the script that it replaces.

    Attributes:
        request: an identifier of what the run computes, such as a hash of its tasks.
        rows: the rows found, if they are not cached elsewhere.
        done_count: the number of finished tasks.
        is_running: whether the run is in progress.
        is_complete: whether all tasks are finished.
        seconds: the time in progress, without pauses.
        started_at: when the run was started.
        error: why the run could not continue, as Markdown.
        previous: the previous run, which is shown until this run has found something.
    """

    request: Hashable
    rows: list[RowT] = field(default_factory=list)
    done_count: int = 0
    is_running: bool = True
    is_complete: bool = False
    seconds: float = 0.0
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    error: str = ""
    previous: "Run[RowT] | None" = None


def time_left(seconds: float, share: float) -> str:
    """Return the remaining time in words; while no work is done, a text that says that it is being estimated.

    Args:
        seconds: the time spent so far.
        share: the fraction of the work that is done, from 0 to 1.
    """
    if not share:
        return _("estimating the time left")
    return _("about {left:.0f} s left", left=seconds * (1 - share) / share)


def last_run(key: str) -> Run[Any] | None:
    """Return the last run that ``run_on_button`` started with this key and that has rows, in progress or stopped."""
    run: Run[Any] | None = st.session_state.get(f"{key}.run")
    return run if run is None or run.rows else run.previous


def run_immediately(
    experiment: str,
    tasks: Sequence[Task],
    draw: Callable[[list[RowT], str], None],
    *,
    key: str,
    effort: Callable[[Any], float] = lambda task: 1.0,
    refuse: Callable[[Any, str], None] | None = None,
    describe: Callable[[list[RowT]], str] | None = None,
    container: DeltaGenerator | None = None,
    height: int = 0,
    counts: bool = True,
) -> list[RowT]:
    """Run an experiment's tasks in order as soon as the page opens, draw the rows found, and return them.

    Results are cached per task. A stopped run continues where it was, and a control that changes some tasks recomputes
    only those.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        tasks: the tasks.
        draw: draws the rows found so far. Receives a key for its elements that differs from drawing to drawing.
        key: the run's key, ``"<page>.<name>"``.
        effort: returns the work of a task relative to the others, to estimate the remaining time.
        refuse: receives a task that could not be run and the reason as Markdown, and draws the reason. By default, it
            is drawn below the chart.
        describe: returns a sentence about the rows found so far, as Markdown. It is drawn above the progress bar.
        container: container of the sentence and the progress bar; by default above the chart.
        height: height in pixels of what ``draw`` draws, which is reserved until the first rows are there.
        counts: whether the progress bar counts the results. False if the sentence of ``describe`` counts them: it is
            drawn less often than the bar, so the two counts would differ.

    Returns:
        All rows found.
    """
    state, request = st.session_state, hash(tuple(tasks))
    width: int | Literal["stretch"] = (BAR_WIDTH if counts else SHORT_BAR_WIDTH) if describe else "stretch"
    run: Run[RowT] | None = state.get(f"{key}.run")
    if run is None or run.request != request:
        run = state[f"{key}.run"] = Run(request)
    with (container or st).container(horizontal=True, vertical_alignment="center", key=f"controls.{key}"):
        headline = st.container(key=f"headline.{key}").empty() if describe else st.empty()
        bar, button = st.empty(), st.empty()
    chart, error_area = st.empty(), st.empty()
    if describe and tasks and dispatch.cached_rows(experiment, tasks[0]) is None:
        headline.markdown(_("Measuring …"))
    style = f' style="height: {height}px"' if height else ""
    chart.html(f'<div class="chart-room"{style}></div>')
    # “Stop” and “Continue” are one button with one key. With two buttons, the browser would keep the first on screen as
    # long as it has the focus. When the first disappears, the second moves, and a click on it can miss.
    is_running = run.is_running
    button.button(
        _("Stop") if is_running else _("Continue"),
        icon=":material/stop:" if is_running else ":material/play_arrow:",
        key=f"{key}.switch",
        on_click=stop if is_running else _continue_run,
        args=(key,),
    )
    # Cached results take no time, so they must not count in the estimate of the remaining time.
    costs = (0.0 if dispatch.cached_rows(experiment, task) is not None else effort(task) for task in tasks)
    efforts = [0.0, *accumulate(costs)]
    start = time.monotonic()

    def report(done: int, steps: tuple[int, int] | None = None) -> None:
        if done == len(tasks):
            return
        current = (efforts[done + 1] - efforts[done]) * steps[0] / steps[1] if steps else 0.0
        left = time_left(time.monotonic() - start, (efforts[done] + current) / efforts[-1] if efforts[-1] else 1.0)
        # If a newer script has replaced this one, Streamlit ends this script during the following call.
        share, text = _progress_text(done, len(tasks), steps, left)
        bar.progress(share, text if counts else left, width=width)

    def show(version: int | str) -> None:
        if rows:
            if describe:
                headline.markdown(describe(rows))
            with chart.container():
                draw(rows, f"{key}.{version}")
        else:
            headline.empty()
            chart.empty()

    rows: list[RowT] = []
    report(0)

    def wait(status: TaskStatus) -> None:
        if text := queue_text(status):
            bar.progress(run.done_count / len(tasks), text, width=width)
        else:
            report(run.done_count, status.steps)

    requested = tasks if run.is_running else tasks[: run.done_count]
    with closing(dispatch.stream(experiment, requested, on_status_change(wait))) as outcomes:
        try:
            _collect_results(
                run,
                rows,
                outcomes,
                report=report,
                draw=show,
                refuse=refuse or (lambda task, text: error_area.info(text)),
                first_draw=FIRST_DRAW,
            )
        except WorkerError as error:
            run.is_running, run.error = False, escape_markdown(sentence(error))
            if is_running:
                st.rerun()
    if run.error:
        error_area.info(run.error)
    if run.done_count < len(tasks):
        text = _("Stopped after {i} of {all} results", i=run.done_count, all=len(tasks))
        bar.progress(run.done_count / len(tasks), text, width=width)
    else:
        bar.empty()
        button.empty()
    show("all")
    return rows


def _progress_text(done_count: int, task_count: int, steps: tuple[int, int] | None, left: str) -> tuple[float, str]:
    """Return the fraction of a run that is done, and the text that reports it.

    Args:
        done_count: the number of finished tasks.
        task_count: the number of all tasks.
        steps: finished and total steps of the current task; None if it reports none.
        left: the remaining time in words.
    """
    values = {"i": done_count, "all": task_count, "left": left}
    if steps is None:
        return done_count / task_count, _("{i} of {all} results · {left}", **values)
    step, total_steps = steps
    if task_count == 1:
        return step / total_steps, _("step {step} of {of} · {left}", step=step, of=total_steps, left=left)
    text = _("{i} of {all} results · step {step} of {of} · {left}", step=step, of=total_steps, **values)
    return (done_count + step / total_steps) / task_count, text


def run_on_button(
    experiment: str,
    request: Hashable,
    next_tasks: Callable[[list[RowT]], Sequence[Task]],
    *,
    key: str,
    label: str,
    icon: str,
    button: str,
    row: DeltaGenerator,
    progress: Callable[[Run[RowT]], tuple[float, str]],
    draw: Callable[[Run[RowT] | None, str], None] | None = None,
    kind: Literal["primary", "secondary"] = "primary",
    help: str | None = None,
) -> Run[RowT] | None:
    """Draw a button that starts a run, and the rows of the last run, as they arrive while it is in progress.

    Rows are not cached for other visitors: they stay in the visitor's session.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        request: an identifier of the measurement that the button starts; a run of another measurement is stopped.
        next_tasks: receives the rows so far and returns the tasks that can run now, the most urgent first; none at the
            end of the run. It may remove or replace rows that are no longer needed.
        key: the run's key.
        label: the button's label.
        icon: the button's icon.
        button: the button's key.
        row: the container of the button and the progress bar.
        progress: returns the fraction done, from 0 to 1, and a text that reports it; called after every task.
        draw: receives the run, the previous run if this one has found nothing yet, or None if there is no run, and
            draws it. Also receives a key that differs from drawing to drawing.
        kind: the button's type.
        help: the button's help while no run is in progress.

    Returns:
        The last run that has rows, even if its ``request`` is another one.
    """
    run: Run[RowT] | None = st.session_state.get(f"{key}.run")
    if run is not None and run.is_running and run.request != request:
        stop(key)  # The visitor has changed a control, so the page now requests another run.
    is_running = run is not None and run.is_running
    # Both labels are on one button with one key. With two buttons, the browser would keep the first on screen as long
    # as it has the focus. When the first disappears, the second moves, and a click on it can miss.
    row.button(
        _("Stop") if is_running else label,
        icon=":material/stop:" if is_running else icon,
        key=button,
        type=kind,
        help=None if is_running else help,
        on_click=stop if is_running else _start,
        args=(key,) if is_running else (key, request),
    )
    # The bar replaces the button “Continue”. A second element would move the button “Stop” while it disappears.
    bar_or_button, chart = row.empty(), st.empty() if draw else None

    def show(shown_run: Run[RowT] | None, version: int | str) -> None:
        if draw and chart:
            with chart.container():
                draw(shown_run, str(version))

    if run is not None and run.is_running:
        if not run.rows:
            show(last_run(key), "before")  # The previous run stays on screen until this run has a result.
        rows, status_text = run.rows, partial(progress, run)
        bar_or_button.progress(*status_text())

        def wait(status: TaskStatus) -> None:
            share, text = status_text()
            bar_or_button.progress(share, queue_text(status) or text)

        try:
            with closing(dispatch.run_ready(experiment, partial(next_tasks, rows), on_status_change(wait))) as outcomes:
                _collect_results(
                    run,
                    rows,
                    outcomes,
                    report=lambda done: bar_or_button.progress(*status_text()),
                    draw=partial(show, run),
                    start=run.done_count,
                )
            run.is_complete = True
        except ac.LabError as error:  # The run ends, because ``next_tasks`` would return the failed task again.
            run.error = escape_markdown(sentence(error))
        stop(key)
        st.rerun()
    if run is not None and run.request == request:
        if run.rows and not run.is_complete:
            bar_or_button.button(
                _("Continue"), icon=":material/play_arrow:", key=f"{key}.continue", on_click=_continue_run, args=(key,)
            )
        if run.error:
            st.info(run.error)
    measured_run = last_run(key)
    show(measured_run, "end")
    return measured_run


def one_at_a_time(next_task: Callable[[Sequence[RowT]], Task | None]) -> Callable[[list[RowT]], Sequence[Task]]:
    """Return ``next_tasks`` for ``run_on_button``, which runs one task at a time until ``next_task`` returns None."""
    return lambda rows: [task for task in [next_task(rows)] if task is not None]


def stop(key: str) -> None:
    """Stop a run. Its rows are kept, and it can be continued."""
    run: Run[Any] = st.session_state[f"{key}.run"]
    run.is_running = False
    if run.rows:
        run.previous = None


def _start(key: str, request: Hashable) -> None:
    st.session_state[f"{key}.run"] = Run(request, previous=last_run(key))


def _continue_run(key: str) -> None:
    run: Run[Any] = st.session_state[f"{key}.run"]
    run.is_running, run.error = True, ""


def queue_text(status: TaskStatus) -> str:
    """Return the text for a task that waits; empty if the task does not wait."""
    if status.ahead:
        return _n(
            "{n} visitor is ahead of you in the queue", "{n} visitors are ahead of you in the queue", n=status.ahead
        )
    if status.ahead == 0:
        return _("You are next in the queue")
    if not status.is_blocked:
        return ""
    if status.timed:
        return _("Waiting for other computations to end, because a timing run needs the machine to itself")
    return _("Waiting for a timing run to end, because it needs the machine to itself")


def on_status_change(callback: Callable[[TaskStatus], object]) -> Callable[[TaskStatus], None]:
    """Return a callback that calls ``callback`` only if the status has changed since the last call."""
    last_status: list[TaskStatus] = []

    def report(status: TaskStatus) -> None:
        if last_status != [status]:
            last_status[:] = [status]
            callback(status)

    return report


def _collect_results(
    run: Run[RowT],
    rows: list[RowT],
    outcomes: Iterable[tuple[Task, tuple[RowT, ...] | ac.LabError]],
    *,
    report: Callable[[int], object],
    draw: Callable[[int], None],
    refuse: Callable[[Task, str], object] | None = None,
    start: int = 0,
    first_draw: float = 0.0,
) -> None:
    """Add the results of tasks to ``rows``; draw after ``first_draw`` seconds, then as often as ``pause`` allows.

    ``report`` and ``draw`` receive the number of finished tasks, counted from ``start``. ``refuse`` receives a task
    that could not be run, and the reason.
    """
    clock = reported_at = time.monotonic()
    next_draw = clock + first_draw
    _runs.add(run)
    try:
        for done, (task, outcome) in enumerate(outcomes, start=start + 1):
            refusal = outcome if isinstance(outcome, ac.LabError) else None
            if isinstance(outcome, WorkerError):  # Without a worker, all other tasks would fail too. The run ends.
                raise outcome
            if not isinstance(outcome, ac.LabError):
                rows += outcome
            cached.page_lock().yield_turn()
            # ``run`` is updated before the page, because an update of the page may fail, or end this script: Streamlit
            # ends it there if a newer script has replaced it.
            last_clock, clock = clock, time.monotonic()
            run.seconds += clock - last_clock
            run.done_count = max(run.done_count, done)
            if refuse and refusal is not None:
                refuse(task, escape_markdown(sentence(refusal)))
            if clock - reported_at >= MESSAGE_INTERVAL:
                report(done)
                reported_at = clock
            if rows and (draw_start := time.monotonic()) > next_draw:
                draw(done)
                draw_end = time.monotonic()
                next_draw = draw_end + pause(draw_end - draw_start, len(_runs))
    finally:
        _runs.discard(run)


_runs: set[Run[Any]] = set()
"""The runs in progress in this process, of all visitors."""


def pause(cost: float, runs: int = 1) -> float:
    """Return the seconds to the next drawing of a chart if one takes ``cost`` seconds and ``runs`` runs are active."""
    return min(max(MIN_REDRAW, cost * runs / DRAWING_SHARE), MAX_REDRAW)
