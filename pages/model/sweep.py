"""Charts of perplexity and copying against a swept quantity, side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.figures.curves import Curve, curves, guide
from app.figures.theme import GREY
from app.jobs import dispatch, runs
from app.ui import chart, palette
from app.words.i18n import _
from attention_core.experiments import swap
from attention_core.experiments.swap import FLOORS, CopyRow, ReadingRow, SwapRow, SwapTask
from pages.model.options import called


@dataclass(frozen=True, kw_only=True)
class Both:
    """The perplexity and copying loss of one variant at one position of the axis; None for a missing number."""

    x: float
    perplexity: float | None
    copied: float | None


def at_once(tasks: Sequence[SwapTask], draw: Callable[[list[SwapRow], str], None], *, key: str) -> list[SwapRow]:
    """Run tasks and draw their rows, with the arguments of ``runs.run_immediately``; recorded rows need no worker."""
    for task in tasks:
        if not task.live and (row := swap.known(task)) is not None:
            dispatch.keep("swap", task, (row,))
    return runs.run_immediately("swap", tasks, draw, key=key)


def pairs(rows: Sequence[SwapRow], x: Callable[[SwapRow], float | None]) -> list[Both]:
    """Return the perplexities and copying losses of one line, combined by position."""
    found: dict[float, dict[str, float]] = {}
    for row in rows:
        at = x(row)
        if at is not None and isinstance(row, ReadingRow):
            found.setdefault(at, {})["perplexity"] = row.perplexity
        elif at is not None and isinstance(row, CopyRow):
            found.setdefault(at, {})["copied"] = row.copied
    return [
        Both(x=at, perplexity=each.get("perplexity"), copied=each.get("copied")) for at, each in sorted(found.items())
    ]


def draw(
    lines: Mapping[str, Sequence[Both]],
    rows: Sequence[SwapRow],
    *,
    key: str,
    x_title: str,
    log_x: bool = False,
    x_ticks: Sequence[float] = (),
    name_of: Callable[[str], str] = called,
) -> None:
    """Draw the charts of perplexity and of copying.

    Args:
        lines: measurements of each word.
        rows: all rows, including those of the original model.
        key: prefix of the elements' keys.
        x_title: title of the horizontal axis.
        log_x: whether the horizontal axis is logarithmic.
        x_ticks: positions of ticks on the horizontal axis.
        name_of: function that returns the legend name of a word.
    """
    ends = [both.x for found in lines.values() for both in found]
    if not ends:
        return
    span = [min(ends), max(ends)]
    as_it_is = [row for row in rows if row.layers == ()]
    read = [row.perplexity for row in as_it_is if isinstance(row, ReadingRow)]
    copied = [row.copied for row in as_it_is if isinstance(row, CopyRow)]
    sides = (
        ("perplexity", _("perplexity of the text"), read, True),
        ("copied", _("loss when copying (nats a token)"), copied, False),
    )
    for place, (name, title, level, log) in zip(st.columns(2), sides, strict=True):
        placed = zip(lines.items(), palette.places(list(lines)), strict=True)
        drawn = [_curve(name_of(word), word, found, name, colour) for (word, found), colour in placed]
        if level:
            drawn.append(guide(_("The model as it is"), span, level[:1] * 2))
        figure = curves(drawn, x_title=x_title, y_title=title, log_x=log_x, log_y=log, height=380, x_ticks=x_ticks)
        with place:
            message = _("Lines: {measure} against {axis}", measure=title, axis=x_title)
            chart.show(figure, key=f"{key}.{name}", name=f"model-{name}", alt=message)


def _curve(title: str, word: str, found: Sequence[Both], name: str, colour: int) -> Curve:
    floor = word in FLOORS
    own = [both for both in found if getattr(both, name) is not None]
    return Curve(
        title,
        [both.x for both in own],
        [getattr(both, name) for both in own],
        colour=GREY if floor else colour,
        dash=("dash", "dashdot")[FLOORS.index(word)] if floor else "solid",
        marks=not floor,
    )
