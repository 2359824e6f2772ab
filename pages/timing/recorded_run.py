"""The second run on the Timing page, which is compared with the run on this machine.

The visitor chooses a run recorded in the app, a run from a file, or none.
"""

from collections.abc import Mapping

import streamlit as st

import attention_core as ac
from app.jobs.timing_runs import last_measurement
from app.state.session import SharedOptions
from app.ui import export
from app.ui.lazy import lazy_popover
from app.words.i18n import _, escape_markdown, sentence
from attention_core.benchmarking.run_file import from_json, recorded_runs, to_json
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.timing import TimingSpec
from attention_core.limits import current
from pages.timing.options import FROM_FILE, NO_RUN, TimingOptions, show_setup

FILE_KEY = "timing.loaded"
"""Session state key of the run that was loaded from a file."""


def show(spec: TimingSpec) -> Run | None:
    """Draw the choice of a recorded run, the settings and the menu of files, and return the chosen run or None.

    Only runs with the mode and causality of ``spec`` can be chosen.
    """
    state = st.session_state
    available: dict[str, Run] = {**recorded_runs(), **({FROM_FILE: state[FILE_KEY]} if FILE_KEY in state else {})}
    comparable = {
        name: run for name, run in available.items() if (run.spec.mode, run.spec.causal) == (spec.mode, spec.causal)
    }
    options = [*sorted(comparable, key=lambda name: name != FROM_FILE), NO_RUN]
    earlier = TimingOptions.recorded.value
    if earlier in available and earlier not in comparable:
        # The visitor has changed the mode or the causal mask. The page then shows a run on the same machine.
        device = available[earlier].stamp.device
        if same := [name for name, run in comparable.items() if run.stamp.device == device]:
            TimingOptions.recorded.set(same[0])
    chosen = TimingOptions.recorded.restrict_to(options) or options[0]
    if comparable:
        TimingOptions.recorded.draw_with_options(
            # The menu of files always offers “none”. This control offers “none” only while it is chosen: before a
            # run on this machine, “none” is of no use, and adding it when a run starts would move the stop button.
            options if chosen == NO_RUN else options[:-1],
            options[0],
            key="timing.beside",
            widget=st.segmented_control,
            format_func=lambda name: _run_title(name, comparable),
            required=True,
            width="content",
            label_visibility="collapsed",
        )

    def draw() -> None:
        if comparable:
            TimingOptions.recorded.draw_with_options(
                options, options[0], key="timing.compared", format_func=lambda name: _run_title(name, comparable)
            )
        _show_files()

    show_setup(recorded=chosen in comparable)
    lazy_popover(_("Files"), draw, key="timing.files", icon=":material/folder_open:", type="tertiary")
    return comparable.get(chosen)


def _run_title(name: str, runs: Mapping[str, Run]) -> str:
    if name not in runs:
        return _("none")
    device = escape_markdown(runs[name].stamp.device)
    return _("{run}, from a file", run=device) if name == FROM_FILE else device


def _show_files() -> None:
    state = st.session_state
    live = last_measurement()
    if live is None:
        st.caption(_("After a measurement on this server, you can save its results here."))
    else:
        export.download(_("Save the live run (JSON)"), lambda: to_json(live), "timing.json")
    st.file_uploader(
        _("Load a run (JSON)"),
        type="json",
        key="timing.file",
        max_upload_size=max(1, current().run_bytes // 2**20),
        on_change=_load_file,
    )
    if "timing.refused" in state:
        st.error(escape_markdown(state["timing.refused"]), icon=":material/error:")
    st.caption(_("To measure on another machine or a GPU, run this command there and load the file here:"))
    command = "python -m attention_core bench --device cuda --preset page --out timing.json"
    st.code(command, language="bash", wrap_lines=True)


def _load_file() -> None:
    state = st.session_state
    state.pop("timing.refused", None)
    if state["timing.file"] is None:
        return
    try:
        run = from_json(state["timing.file"].getvalue())
    except ac.LabError as error:
        state["timing.refused"] = sentence(error)
        return
    # A loaded file is selected immediately. The page also takes over the file's mode and causality, because it offers
    # only runs that match these options.
    state[FILE_KEY] = run
    TimingOptions.recorded.set(FROM_FILE)
    TimingOptions.mode.set(run.spec.mode)
    SharedOptions.causal.set(run.spec.causal)
