"""A sweep on screen: points as they come, progress with the time left, and a stop that keeps what is there."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

import attention_core as ac
from app import compute
from app.text import _, literal, sentence
from attention_core.experiments.task import Row, Task

REDRAW = 0.7
"""Seconds between two drawings of a chart that grows: a redraw costs the browser up to half of that."""
FIRST = 0.2
"""Seconds before the first drawing: what is cached is there sooner and is drawn once, what is computed shows early."""


def show(
    experiment: str,
    tasks: Sequence[Task],
    draw: Callable[[list[Row], str], None],
    *,
    key: str,
    effort: Callable[[Any], float] = lambda task: 1.0,
    refuse: Callable[[Any, str], None] | None = None,
) -> list[Row]:
    """Run an experiment's tasks in order and draw what is found.

    Results are cached task by task: a sweep that was stopped goes on where it was, and a knob that changes some tasks
    recomputes only those.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        tasks: its tasks.
        draw: draws the rows found so far; it is given a key for its elements that differs from drawing to drawing.
        key: the sweep's key, ``"<page>.<name>"``.
        effort: how much work a task is beside the others, for the time left.
        refuse: draws why a task could not be run, as Markdown; by default beneath the chart.

    Returns:
        All rows found.
    """
    state, mark = st.session_state, hash(tuple(tasks))
    if state.get(f"{key}.mark") != mark:
        state[f"{key}.mark"], state[f"{key}.stopped"], state[f"{key}.done"] = mark, False, 0
    with st.container(horizontal=True, vertical_alignment="center"):
        bar, button = st.empty(), st.empty()
    chart, complaint = st.empty(), st.empty()
    if state[f"{key}.stopped"]:
        button.button(
            _("Continue"), icon=":material/play_arrow:", key=f"{key}.continue", on_click=_let, args=(key, False)
        )
    else:
        button.button(_("Stop"), icon=":material/stop:", key=f"{key}.stop", on_click=_let, args=(key, True))

    found: list[Row] = []
    efforts = [effort(task) for task in tasks]
    begun = time.monotonic()
    drawn = begun - REDRAW + FIRST
    for i, task in enumerate(tasks):
        if state[f"{key}.stopped"] and i >= state[f"{key}.done"]:
            break
        # Touching the page is what ends a run that a newer one has replaced.
        spent = sum(efforts[:i])
        left = (time.monotonic() - begun) / spent * (sum(efforts) - spent) if i else 0.0
        bar.progress(i / len(tasks), _("{i} of {all} · about {left:.0f} s left", i=i, all=len(tasks), left=left))
        try:
            found += compute.rows(experiment, task)
        except ac.LabError as error:
            told = literal(sentence(error))
            refuse(task, told) if refuse else complaint.info(told)
        state[f"{key}.done"] = max(state[f"{key}.done"], i + 1)
        if found and time.monotonic() - drawn > REDRAW:
            with chart.container():
                draw(found, f"{key}.{i}")
            drawn = time.monotonic()
    if state[f"{key}.done"] < len(tasks):
        bar.progress(
            state[f"{key}.done"] / len(tasks), _("Stopped at {i} of {all}", i=state[f"{key}.done"], all=len(tasks))
        )
    else:
        bar.empty()
        button.empty()
    if found:
        with chart.container():
            draw(found, f"{key}.all")
    return found


def _let(key: str, stopped: bool) -> None:
    st.session_state[f"{key}.stopped"] = stopped
