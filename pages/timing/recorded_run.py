"""The choice of a second run to compare with the run on this machine: one in the app, one from a file, or none."""

from collections.abc import Mapping

import streamlit as st

import attention_core as ac
from app.jobs.timing_runs import measured
from app.state.session import SharedOptions
from app.ui import export
from app.ui.lazy import lazy_popover
from app.words.i18n import _, escape_markdown, sentence
from attention_core.benchmarking.run_file import from_json, recorded, to_json
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.timing import TimingSpec
from attention_core.limits import current
from pages.timing.options import LOADED, NONE, TimingOptions

FILE = "timing.loaded"
"""Session state key of the run from a file."""


def show(spec: TimingSpec) -> Run | None:
    """Draw the form with the recorded runs and files; return the chosen run of the same mode and causality."""
    state = st.session_state
    known: dict[str, Run] = {**recorded(), **({LOADED: state[FILE]} if FILE in state else {})}
    fitting = {name: run for name, run in known.items() if (run.spec.mode, run.spec.causal) == (spec.mode, spec.causal)}
    options = [*sorted(fitting, key=lambda name: name != LOADED), NONE]

    def draw() -> None:
        TimingOptions.recorded.draw_with_options(
            options,
            options[0],
            key="timing.beside",
            format_func=lambda name: _named(name, fitting) if name in fitting else _("none"),
            help=None
            if fitting
            else _(
                "No recorded run matches the chosen mode and causal setting. Start a run on this machine, or load a "
                "run from a file."
            ),
        )
        _files()

    lazy_popover(_("Recordings"), draw, key="timing.files", icon=":material/folder_open:", type="tertiary")
    return fitting.get(TimingOptions.recorded.restrict_to(options) or options[0])


def _named(name: str, runs: Mapping[str, Run]) -> str:
    return _("{run}, from a file", run=title(runs[name])) if name == LOADED else title(runs[name])


def title(run: Run) -> str:
    """Return the name of a run in the selectbox; its date is shown below the chart."""
    return _(
        "{device} · {dtype} · {heads} heads of size {d}",
        device=run.stamp.device,
        dtype=run.spec.dtype,
        heads=run.spec.heads,
        d=run.spec.head_size,
    )


def _files() -> None:
    state = st.session_state
    live = measured()
    if live is None:
        st.caption(_("After a run on this machine, you can save its results here."))
    else:
        export.download(_("Save the live run (JSON)"), lambda: to_json(live), "timing.json")
    st.file_uploader(
        _("Load a run (JSON)"),
        type="json",
        key="timing.file",
        max_upload_size=max(1, current().run_bytes // 2**20),
        on_change=_load,
    )
    if "timing.refused" in state:
        st.error(escape_markdown(state["timing.refused"]), icon=":material/error:")
    st.caption(_("To measure on another machine or a GPU, run this command there and load the file here:"))
    command = "python -m attention_core bench --device cuda --preset page --out timing.json"
    st.code(command, language="bash", wrap_lines=True)


def _load() -> None:
    state = st.session_state
    state.pop("timing.refused", None)
    if state["timing.file"] is None:
        return
    try:
        run = from_json(state["timing.file"].getvalue())
    except ac.LabError as error:
        state["timing.refused"] = sentence(error)
        return
    # A loaded file is selected immediately. The page also takes over its mode and causality, since it offers only runs
    # that match these options.
    state[FILE] = run
    TimingOptions.recorded.set(LOADED)
    TimingOptions.mode.set(run.spec.mode)
    SharedOptions.causal.set(run.spec.causal)
