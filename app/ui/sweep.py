"""A function that runs a sweep (measurements at several lengths or settings) and draws a sentence and a chart."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from streamlit.delta_generator import DeltaGenerator

from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.jobs import runs
from app.ui import chart
from app.words.i18n import _
from attention_core.experiments.task import Task

RowT = TypeVar("RowT")


def show(
    experiment: str,
    tasks: Sequence[Task],
    lines: Callable[[list[RowT]], tuple[Sequence[Curve], Mapping[str, Any]]] | None,
    describe: Callable[[list[RowT]], str],
    *,
    container: DeltaGenerator,
    key: str,
    name: str,
    height: int,
    effort: Callable[[Any], float] = lambda task: 1.0,
) -> list[RowT]:
    """Run an experiment's tasks, draw a sentence and a line chart of the rows as they arrive, and return all rows.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        tasks: the tasks.
        lines: returns the lines of some rows, and the arguments of ``curves`` that describe their axes; None to draw
            no chart.
        describe: returns the sentence about some rows, as Markdown.
        container: container of the sentence.
        key: the run's key, ``"<page>.<name>"``.
        name: name of the saved picture, without extension.
        height: height of the chart in pixels.
        effort: returns the work of a task relative to the others, to estimate the remaining time.
    """

    def draw(rows: list[RowT], drawing_key: str) -> None:
        if lines is None:
            return
        line_list, axes = lines(rows)
        alt = _("Lines: {y} against {x}", y=axes["y_title"].replace("<br>", ", "), x=axes["x_title"])
        chart.show(curves(line_list, **axes, height=height), key=f"{drawing_key}.chart", name=name, alt=alt)

    chart_height = height if lines else 0
    return runs.run_immediately(
        experiment, tasks, draw, key=key, effort=effort, describe=describe, container=container, height=chart_height
    )
