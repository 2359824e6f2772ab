"""The ``View`` class of the Entropy page. A view runs one experiment and shows its results.

Results are shown as a sentence, a chart, a table, definitions and downloads.
"""

import pprint
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.figures.lines.curve import Curve
from app.state import presets
from app.state.session import SharedOptions
from app.ui import export, sweep
from app.ui.lazy import lazy_expander, lazy_popover
from app.ui.scope import Scope
from app.words.finding import Finding, Lines, text_above, text_below, to_lines
from app.words.i18n import _, _n, paragraph, sentence
from app.words.labels import axis_title
from attention_core.experiments.lengths import measured_lengths
from attention_core.experiments.task import HeadRow
from attention_core.formatting import between
from attention_core.inputs.source import TextSource
from pages.entropy.options import EntropyOptions, Measurement, lengths, show_heads

HEIGHT = 362
"""Height of a chart in pixels; with the finding above and the explanation below, it fits a projector's screen."""
MIN_GROWTH_TOKENS = 256
"""Tokens below which a text shows little growth, so that the page offers a longer one."""
MIN_LENGTHS = 3
"""Smallest number of lengths at which growth is described."""
MAX_BANDS = 2
"""Largest number of bands in a chart at which all bands are always visible."""
MAX_TITLE = 50
"""Largest number of characters of an axis title that names the scale; a longer title would not fit next to the axis."""

RowT = TypeVar("RowT", bound=HeadRow)


@dataclass(frozen=True, kw_only=True)
class View(Generic[RowT]):
    """One view: an experiment, and what the page shows of its rows.

    Attributes:
        experiment: module with ``tasks`` and ``run``.
        heading: question that the view answers, to be translated.
        variants: returns the variants measured, in the form of links, such as ``local~window~8``.
        arguments: returns the arguments of ``experiment.tasks`` after the source.
        settings: returns the other keyword arguments of ``experiment.tasks``: ``n``, or ``longest`` for several
            lengths, and ``seeds`` if there are several. ``causal`` is added.
        controls_above_chart: draws the view's own controls above the chart.
        controls_in_settings: draws the view's own controls in the form with the settings.
        sweeps: whether the view measures several lengths, up to one that the visitor chooses.
        describe: returns the findings about the rows of the chosen heads; a text is a single finding.
        chart: returns the lines, and the arguments of ``curves`` that describe their axes.
        table: returns the lines of the table, each a cell by column.
        columns: number of columns that the table shows until the visitor chooses all; None to show all.
        formula: definition in LaTeX.
        notes: Markdown below the definition.
        dashed: what the dashed lines are, if the chart has any, to be translated.
        caption: returns the last sentence of the line below the chart; empty for none.
        subtitle: returns the page's subtitle if the numbers do not depend on the input's values; otherwise empty.
    """

    experiment: ModuleType
    heading: str
    variants: Callable[[Measurement], Sequence[str]]
    arguments: Callable[[Measurement], tuple[object, ...]] = lambda measurement: ()
    settings: Callable[[Measurement], dict[str, Any]] = lambda measurement: {
        "longest": measurement.longest,
        "seeds": measurement.seeds,
    }
    controls_above_chart: Callable[[Measurement], object] | None = None
    controls_in_settings: Callable[[Measurement], object] | None = None
    sweeps: bool = True
    describe: Callable[[Sequence[RowT], Measurement], Lines | Finding | str]
    chart: Callable[[Sequence[RowT], Measurement], tuple[Sequence[Curve], Mapping[str, Any]]]
    table: Callable[[Sequence[RowT], Measurement], list[dict[str, object]]]
    columns: int | None = None
    formula: str
    notes: Callable[[Measurement], str]
    dashed: str = ""
    caption: Callable[[Measurement], str] = lambda measurement: ""
    subtitle: Callable[[Measurement], str] = lambda measurement: ""

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.__name__.rpartition(".")[2]

    def scope(self, measurement: Measurement) -> Scope:
        """Return the scope of the numbers of this view."""
        settings = self.settings(measurement)
        lengths = (settings["n"],) if "n" in settings else measured_lengths(settings["longest"])
        return Scope(
            head=measurement.head,
            heads=measurement.record.heads,
            aggregation="mean" if measurement.uses_mean else "median",
            seeds=settings.get("seeds", 1),
            n=measurement.record.m,
            queries=measurement.record.n if measurement.record.crosses else 0,
            tokens=lengths[-1],
            shortest=lengths[0] if len(lengths) > 1 else None,
            variants=tuple(self.variants(measurement)),
            subtitle=self.subtitle(measurement),
        )

    def show_settings(self, measurement: Measurement) -> None:
        """Draw the form with the view's settings."""

        def draw() -> None:
            if self.controls_in_settings:
                self.controls_in_settings(measurement)
            if self.sweeps:
                _show_extent(measurement)
            show_heads()
            for option in (EntropyOptions.unit, EntropyOptions.line, EntropyOptions.band):
                option.draw()

        lazy_popover(_("Settings"), draw, key="entropy.display", icon=":material/tune:", type="tertiary")

    def show(self, top_result: tuple[DeltaGenerator, Measurement]) -> None:
        """Draw the controls, the sweep and its results.

        ``top_result`` is the element for the finding, and the measurement.
        """
        placeholder, measurement = top_result

        def findings(rows: Sequence[RowT]) -> Lines:
            return to_lines(self.describe(measurement.select_heads(rows), measurement))

        if self.controls_above_chart:
            with st.container(horizontal=True, vertical_alignment="center", key="controls.entropy"):
                self.controls_above_chart(measurement)
        if self.sweeps:
            show_short_text_message(measurement)

        tasks = self.experiment.tasks(
            measurement.source, *self.arguments(measurement), causal=measurement.causal, **self.settings(measurement)
        )
        rows: list[RowT] = sweep.show(
            self.name,
            tasks,
            lambda rows: with_scale_names(*self.chart(measurement.select_heads(rows), measurement)),
            lambda rows: text_above(findings(rows)),
            container=placeholder,
            key=f"entropy.{self.name}",
            name=EntropyOptions.view.value,
            height=HEIGHT,
            # The time of a task grows with the number of token pairs, n². The part that does not depend on n equals the
            # work for 10,000 pairs.
            effort=lambda task: task.n**2 + 10_000 if self.sweeps else 1.0,
        )
        if rows:
            drawn, _axes = self.chart(measurement.select_heads(rows), measurement)
            bands = band_note(
                drawn,
                heads=1 if measurement.head is not None else measurement.record.heads,
                seeds=self.settings(measurement).get("seeds", 1),
            )
            dashed = _(self.dashed) if self.dashed and any(line.dash == "dash" for line in drawn) else ""
            averages = _("With a causal mask, each value is an average over queries with 1 to n keys.")
            samples = (sample_note(measurement), averages if measurement.causal else "") if self.sweeps else ()
            if caption := paragraph(dashed, bands, *samples, self.caption(measurement)):
                st.caption(caption)
            if text := text_below(findings(rows)):
                st.markdown(text)
            lines = self.table(measurement.select_heads(rows), measurement)
            numbers = {name for line in lines for name, cell in line.items() if isinstance(cell, float)}
            two_digits, right = (
                st.column_config.NumberColumn(format="%.2f"),
                st.column_config.TextColumn(alignment="right"),
            )
            formats = {name: two_digits if name in numbers else right for name in list(lines[0])[1:]}
            table_options: dict[str, Any] = {"hide_index": True, "column_config": formats}

            def show_table() -> None:
                shown = None if EntropyOptions.columns.value else self.columns
                st.dataframe(lines, column_order=list(lines[0])[:shown], **table_options)
                if self.columns:
                    EntropyOptions.columns.draw()

            lazy_expander(_("Numbers"), show_table, key="entropy.all")
            notes = [self.notes(measurement), *([f"- {length_note(measurement)}"] if self.sweeps else [])]
            export.draw_formula(_("Definition"), self.formula, "\n".join(notes), key="entropy.method")
            lazy_expander(_("Export"), lambda: self._export(measurement, rows), key="entropy.files")

    def _export(self, measurement: Measurement, rows: Sequence[RowT]) -> None:
        """Draw the download of the rows as CSV, and the Python code that measures them again."""
        head_rows = measurement.select_heads(rows)
        export.download(_("Numbers (CSV)"), lambda: export.rows_to_csv(head_rows, entropy="nats"), f"{self.name}.csv")
        arguments = "".join(f", {pprint.pformat(value, width=100)}" for value in self.arguments(measurement))
        arguments += "".join(f", {name}={value!r}" for name, value in self.settings(measurement).items())
        head_filter = "" if measurement.head is None else f" if row.head == {measurement.head}"
        export.draw_snippet(
            "import attention_core as ac\n"
            f"from attention_core.experiments import {self.name}\n\n"
            f"source = {measurement.source.code}\n"
            f"tasks = {self.name}.tasks(source{arguments}, causal={measurement.causal})\n"
            f"rows = [row for task in tasks for row in {self.name}.run(task){head_filter}]\n"
        )


def with_scale_names(lines: Sequence[Curve], axes: Mapping[str, Any]) -> tuple[Sequence[Curve], dict[str, Any]]:
    """Return the lines and axes (arguments of ``curves``) of a chart; titles of logarithmic axes name the scale.

    A title without room for the name of the scale does not change.
    """
    titles = {
        f"{axis}_title": axis_title(axes[f"{axis}_title"], log=True)
        for axis in "xy"
        if axes.get(f"log_{axis}") and f"{axis}_title" in axes
    }
    return lines, {
        "max_bands": MAX_BANDS,
        **axes,
        **{name: title for name, title in titles.items() if len(title) <= MAX_TITLE},
    }


def band_note(lines: Sequence[Curve], *, heads: int, seeds: int) -> str:
    """Return what the shaded bands of a chart mean; empty if no band is always visible.

    Args:
        lines: the lines of the chart.
        heads: number of heads that each line includes.
        seeds: number of seeds that each line includes.
    """
    bands = [line for line in lines if line.low is not None]
    if not 0 < sum(not line.hides_band for line in bands) <= MAX_BANDS or heads * seeds == 1:
        return ""
    if seeds == 1:
        return _("Shaded: middle half of the heads.")
    if heads == 1:
        return _("Shaded: middle half of the seeds.")
    return _("Shaded: middle half of the heads and seeds.")


def sample_note(measurement: Measurement) -> str:
    """Return how many sequences are measured at each length."""
    if measurement.source.is_generated:
        return _n(
            "One synthetic sequence for each length.", "{n} synthetic sequences for each length.", n=measurement.seeds
        )
    if isinstance(measurement.source, TextSource) and not measurement.record.crosses:
        return _("Each length n uses the first n tokens of the text.")
    return _("One input, cut to each length.")


def length_note(measurement: Measurement) -> str:
    """Return how the sequences of other lengths are made."""
    return sentence(measurement.source.lengths_notice(measurement.record))


def _show_extent(measurement: Measurement) -> None:
    """Draw the choice of the longest length and, for a synthetic source, of the seeds."""
    max_tokens, choices = measurement.max_tokens, lengths()
    if max_tokens > choices[0]:
        last = max(measurement.options.longest, next(n for n in choices if n >= max_tokens))
        EntropyOptions.longest.draw(
            options=[*(n for n in choices if n < max_tokens), last],
            format_func=lambda n: _("{n} (all)", n=max_tokens) if n >= max_tokens else str(n),
        )
    if measurement.source.is_generated:
        EntropyOptions.seeds.draw()


def short_text_message(max_tokens: int, *, written: bool) -> str:
    """Return the message that a written text has too few tokens; empty for other sources and longer texts."""
    if max_tokens >= MIN_GROWTH_TOKENS or not written:
        return ""
    return _n(
        "This text has only {n} token. A longer input shows the effect of the length more clearly:",
        "This text has only {n} tokens. A longer input shows the effect of the length more clearly:",
        n=max_tokens,
    )


def show_short_text_message(measurement: Measurement) -> None:
    """Draw the message that a text has too few tokens, with buttons that choose a longer input."""
    if not (text := short_text_message(measurement.max_tokens, written=measurement.source.is_text)):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(text, width="content")
        for label, icon, option, value in (
            (_("A longer text"), ":material/notes:", SharedOptions.text, presets.texts()["long"]),
            (_("A synthetic sequence"), ":material/ssid_chart:", SharedOptions.input, "synthetic"),
        ):
            st.button(label, type="tertiary", icon=icon, on_click=option.set, args=(value,))


def progress_note(lengths: Sequence[float], measurement: Measurement) -> str:
    """Return the note that fewer than ``MIN_LENGTHS`` lengths are measured so far; empty if enough or all are."""
    if len(lengths) < min(MIN_LENGTHS, len(measured_lengths(measurement.longest))):
        return _("So far, fewer than {n} text lengths have been measured.", n=MIN_LENGTHS)
    return ""


def quartiles(values: Sequence[float]) -> str | None:
    """Return the lower and upper quartiles of ``values`` as text; None without values."""
    if not values:
        return None
    low, high = np.quantile(values, (0.25, 0.75)).tolist()
    return between(low, high, ".2f")
