"""Code that the chapters of the Causal page share: variants with the visitor's settings, line charts, and downloads."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import streamlit as st

import attention_core as ac
from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.state.session import with_chosen_settings
from app.ui import chart, export
from app.ui.lazy import lazy_expander
from app.words.i18n import _, enumeration, escape_markdown
from app.words.labels import axis_title
from attention_core.experiments.generation import MemoryRow
from attention_core.formatting import memory
from attention_core.variant import Variant

KIB = 2**10
TICKS = {16.0**i: f"{16**i} KiB" for i in range(3)} | {2.0**12 * 16**i: f"{4 * 16**i:,} MiB" for i in range(3)}
"""Labels of the ticks of a memory axis, by the position of the tick in KiB."""


def with_settings(variants: Iterable[Variant]) -> list[ac.Attention]:
    """Return the variants with the visitor's settings or defaults, except ``mode``, which keeps its default."""
    result = []
    for variant in variants:
        params = with_chosen_settings(variant.key).params
        values = {s.name: getattr(params, s.name) for s in params.settings() if s.name != "mode"}
        result.append(ac.get(variant.key, **values))
    return result


def size_text(row: MemoryRow) -> str:
    """Return the memory that a variant keeps between tokens: the constant part and the part per token."""
    if not row.grown_bytes:
        return memory(row.state_bytes)
    each = _("{memory} per token", memory=memory(row.grown_bytes))
    return f"{memory(row.state_bytes)} + {each}" if row.state_bytes else each


def bold(names: Iterable[str]) -> str:
    """Return names in bold, separated by commas."""
    return enumeration(f"**{escape_markdown(name)}**" for name in names)


def show_lines(lines: Sequence[Curve], *, key: str, name: str, alt: str, **axes: Any) -> None:  # noqa: ANN401
    """Draw a line chart; ``lines`` and ``axes`` are passed to ``curves``, the other arguments to ``chart.show``."""
    for axis in "xy":
        axes[f"{axis}_title"] = axis_title(axes[f"{axis}_title"], log=axes.get(f"log_{axis}", False))
    chart.show(curves(lines, **axes), key=key, name=name, alt=alt)


def export_panel(files: Sequence[tuple[str, Callable[[], bytes], str]], code: str) -> None:
    """Draw a folded panel with downloads, each given as in ``export.download``, and the code that computes them."""

    def draw() -> None:
        with st.container(horizontal=True):
            for label, data, file_name in files:
                export.download(label, data, file_name)
        export.draw_snippet(code)

    lazy_expander(_("Export"), draw, key="causal.files")
