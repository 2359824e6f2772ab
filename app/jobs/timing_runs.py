"""The measurement of running times that several pages show: its button, its progress and its last result."""

from collections.abc import Callable, Sequence
from functools import partial

from streamlit.delta_generator import DeltaGenerator

from app.jobs import runs
from app.words.i18n import _
from attention_core.benchmarking.device import stamp
from attention_core.benchmarking.run_records import Run, Skipped, TimingRow, group_samples
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments import timing_length

KEY = "timing"
"""The key of the run, which is shared by the pages that measure time."""


def run_on_machine(spec: TimingSpec, row: DeltaGenerator, draw: Callable[[Run | None, str], None]) -> None:
    """Draw the button that starts a timing run on this machine, and the samples of the last run, as they arrive.

    Args:
        spec: the measurement that the button starts.
        row: the container of the button and the progress bar.
        draw: draws the last run under the given key, which differs from drawing to drawing. The run is None if there
            was no run, or if its mode or causal mask differs from that of ``spec``.
    """

    def compare(run: runs.Run[TimingRow] | None, key: str) -> None:
        record = _record(run)
        is_same_mode = record is not None and (record.spec.mode, record.spec.causal) == (spec.mode, spec.causal)
        draw(record if is_same_mode else None, key)

    runs.run_on_button(
        "timing_length",
        spec,
        runs.one_at_a_time(partial(timing_length.next_sample, spec)),
        key=KEY,
        label=_("Measure on this server"),
        icon=":material/timer:",
        kind="secondary",
        button="timing.button",
        row=row,
        progress=partial(progress, spec),
        draw=compare,
    )


def last_measurement() -> Run | None:
    """Return the last measurement made in this session, complete or not."""
    return _record(runs.last_run(KEY))


def _record(run: runs.Run[TimingRow] | None) -> Run | None:
    if run is None:
        return None
    assert isinstance(run.request, TimingSpec)
    return group_samples(run.request, stamp(run.request.device, run.started_at), run.rows)


def progress(spec: TimingSpec, run: runs.Run[TimingRow]) -> tuple[float, str]:
    """Return the fraction of a run that is done, from 0 to 1, and a text that reports it."""
    share, count = share_done(spec, run.rows), len(run.rows)
    left = runs.time_left(run.seconds, share)
    message = _("{i} of {all} samples · {left}", i=count, all=timing_length.total(spec), left=left)
    return share, message


def share_done(spec: TimingSpec, rows: Sequence[TimingRow]) -> float:
    """Return the fraction of a run that is done, from 0 to 1. Each sample is weighted by its number of tokens.

    The first sample of a variant at a length also counts operations, and takes about twice as long.
    """
    total_work = (spec.rounds + 1) * len(spec.variants) * sum(spec.sizes)
    finished_work = sum(row.n * (2 if isinstance(row, Skipped) or row.round == 0 else 1) for row in rows)
    return min(1.0, finished_work / total_work)
