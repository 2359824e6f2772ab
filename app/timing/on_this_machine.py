"""The run on this machine: its button, its progress, and what it has measured so far."""

from collections.abc import Callable, Sequence
from functools import partial

from streamlit.delta_generator import DeltaGenerator

from app import run
from app.text import _
from attention_core.experiments import timing_length
from attention_core.experiments.task import Row
from attention_core.measure.device import stamp
from attention_core.measure.records import Run, gather
from attention_core.measure.timing import TimingSpec

KEY = "timing"
"""Of the run, which the pages that measure time share."""


def show(spec: TimingSpec, row: DeltaGenerator, draw: Callable[[Run | None, str], None]) -> None:
    """Draw the button and what was measured; while a run is under way, take its samples and draw them as they come.

    Args:
        spec: what a press of the button measures.
        row: where the button and the progress go.
        draw: draws the run, None where there is none of this mode; it is given a key that differs from drawing to
            drawing.
    """

    def compare(found: run.Run[Row] | None, key: str) -> None:
        record = _record(found)
        same = record is not None and (record.spec.mode, record.spec.causal) == (spec.mode, spec.causal)
        draw(record if same else None, key)

    run.on_button(
        "timing_length",
        spec,
        partial(timing_length.following, spec),
        key=KEY,
        label=_("Run on this machine"),
        icon=":material/play_arrow:",
        button="timing.button",
        row=row,
        progress=partial(_progress, spec),
        draw=compare,
    )


def measured() -> Run | None:
    """What was measured last, or has been so far."""
    return _record(run.last(KEY))


def _record(found: run.Run[Row] | None) -> Run | None:
    if found is None:
        return None
    assert isinstance(found.asked, TimingSpec)
    return gather(found.asked, stamp(found.asked.device, found.began), found.rows)


def _progress(spec: TimingSpec, found: run.Run[Row]) -> tuple[float, str]:
    share, count = share_done(spec, found.rows), len(found.rows)
    left = run.time_left(found.seconds, share)
    told = _("{i} of {all} samples · about {left:.0f} s left", i=count, all=timing_length.total(spec), left=left)
    return share, told


def share_done(spec: TimingSpec, rows: Sequence[Row]) -> float:
    """How much of the work is done: a sample weighs as much as its length, the first of each twice for its counting."""
    whole = (spec.rounds + 1) * len(spec.variants) * sum(spec.sizes)
    done = sum(int(row["n"] or 0) * (2 if row["round"] == 0 else 1) for row in rows)
    return min(1.0, done / whole)
