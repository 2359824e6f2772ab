"""The Overview chapter of the Causal page: which variants can generate text, and with how much memory.

Its table also lists the text length from which a variant needs fewer multiply-adds than softmax.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.lines.curve import Curve
from app.jobs import dispatch
from app.state.session import REFERENCE, SharedOptions
from app.ui import chart, export, input_panel
from app.ui.input_forms import forms
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.finding import Finding
from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import label
from attention_core.experiments import generation
from attention_core.experiments.generation import MemoryRow
from attention_core.formatting import format_interpolated, memory, number
from attention_core.ops.linear.causal_scan import CHUNK
from pages.causal.shared import KIB, TICKS, show_lines, size_text, with_settings

HEIGHT = 430
TABLE_HEIGHT = 438
"""Height in pixels of the table, at which half of a row shows that more rows follow."""
TOKEN_COUNTS = tuple(2**i for i in range(15))
"""Numbers of tokens at which the chart has points."""
KNOWN = ("softmax", "alibi", "topk", "linear", "retention", "deltanet", "performer")
"""Keys of well-known variants, which come first in a group of variants in the chart."""
MAX_NAMED = 3
"""Largest number of names of a group."""
MAX_GROUPS = 4
"""Largest number of groups of constant memories in the chart."""
MIN_GAP = 1.5
"""Smallest ratio of the sizes of two successive memories that belong to different groups."""
UNITS = {"MiB": KIB, "KiB": 1.0, "B": 1 / KIB}
"""Units of memory in KiB, the largest first."""
SOFTMAX_COLOUR, GROWING_COLOUR, CONSTANT_COLOUR = 0, 10, 2
"""Colours of softmax's memory, of growing memories below it, and of constant memories."""


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the result, the chart of memory, the table of all variants, and why some variants cannot generate."""
    attentions = with_settings(ac.all_variants())
    causal = [attention for attention in attentions if not attention.variant.causal_reason]
    learned = [attention for attention in attentions if needs_learning(attention)]
    unable = [attention for attention in attentions if attention not in (*causal, *learned)]
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = generation.tasks([attention.word for attention in causal], heads=heads, d=d, d_v=d_v)
    rows = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    unable.sort(key=lambda attention: attention not in SharedOptions.variants.value)
    finding = summary(rows, [_(each.variant.title) for each in unable], len(learned))
    headline.markdown(finding.text)
    st.caption(
        _(
            "Blue: memory grows with each token. Green: constant memory, where a window counts as full from the first "
            "token on. Point at a line or tap it to see its variants."
        )
    )
    _chart(rows, heads)
    st.markdown(finding.explanation)
    reasons = "\n".join(
        f"- **{escape_markdown(label(each))}**: {_(each.variant.causal_reason or '')}" for each in unable
    )
    published = _(
        "Latent attention and quantised keys can generate text in published models, because the projection to latents "
        "and the codes are learned in training. Here, both are computed from the text itself."
    )
    title = _("Why {n} variants cannot generate text", n=len(unable))
    lazy_expander(title, partial(st.markdown, f"{reasons}\n\n{published}"), key="causal.refused")
    st.markdown("## " + _("All variants"), anchors=False)
    widths = (138, 112, 108) if chart.is_narrow() else (None, None, None)  # On a phone, all columns are visible.
    st.dataframe(
        table(rows, learned, unable),
        hide_index=True,
        height=TABLE_HEIGHT,
        column_config={
            title: st.column_config.Column(width=width) for title, width in zip(titles(), widths, strict=True)
        },
    )
    st.caption(
        _(
            "The last column counts one causal pass over a whole text at head size {d}, in which Linear works in "
            "chunks of {chunk} tokens.",
            chunk=CHUNK,
            d=d,
        )
    )
    export.download(_("Numbers (CSV)"), lambda: export.rows_to_csv(rows), "causal-variants.csv")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the table: all heads together, and the variants that can generate."""
    words = tuple(a.word for a in with_settings(ac.all_variants()) if not a.variant.causal_reason)
    text = method(chosen.qkv.heads, chosen.qkv.q.shape[-1], forms()[chosen.source.key].name())
    return replace(input_panel.scope(chosen), head=None, aggregation="each", variants=words, subtitle=text)


def needs_learning(attention: ac.Attention) -> bool:
    """Return whether a variant can generate text only if its projections or codes are learned in training."""
    return attention.variant.family == "cache" and bool(attention.variant.causal_reason)


def summary(rows: Sequence[MemoryRow], unable: Sequence[str], learned: int) -> Finding:
    """Return how many variants can generate text, the memory of softmax and linear attention, and why some cannot.

    ``learned`` variants can generate text only in a form that is learned in training.
    """
    linear = linear_row(rows)
    softmax = TOKEN_COUNTS[-1] * linear.token_bytes
    return Finding(
        _(
            "**{able} of {all} variants can generate text, {learned} of them only if trained for it. {fixed} of the "
            "other {rest} have constant memory.**",
            able=len(rows) + learned,
            all=len(rows) + learned + len(unable),
            learned=learned,
            rest=len(rows),
            fixed=sum(not row.grown_bytes for row in rows),
        ),
        paragraph(
            _(
                "Softmax keeps every token, so its memory grows. After {n:,} tokens, softmax stores about {ratio} "
                "times as much as {name}.",
                n=TOKEN_COUNTS[-1],
                name=_(ac.from_word(linear.variant).title),
                ratio=format_interpolated(softmax / linear.state_bytes),
            ),
            _("Variants with constant memory merge or discard earlier tokens."),
            _(
                "The other {n} variants, such as {name}, cannot generate text, because their outputs depend on later "
                "tokens.",
                n=len(unable),
                name=escape_markdown(unable[0]),
            ),
        ),
    )


def method(heads: int, d: int, name: str) -> str:
    """Return the text about the number of heads and the head size of the calculation, and the name of the input."""
    return _n(
        "Calculated for {n} head of size {d} in float32 ({input})",
        "Calculated for {n} heads of size {d} in float32 ({input})",
        n=heads,
        d=d,
        input=name,
    )


def linear_row(rows: Sequence[MemoryRow]) -> MemoryRow:
    """Return the memory of linear attention."""
    return next(row for row in rows if ac.from_word(row.variant).key == "linear")


def known_first(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """Return rows with the variants in ``KNOWN`` first."""
    keys = {row.variant: ac.from_word(row.variant).key for row in rows}
    return sorted(rows, key=lambda row: KNOWN.index(keys[row.variant]) if keys[row.variant] in KNOWN else len(KNOWN))


def group_name(rows: Sequence[MemoryRow]) -> str:
    """Return the names of the first ``MAX_NAMED`` variants and the number of the others."""
    names = [_(ac.from_word(row.variant).title) for row in rows[:MAX_NAMED]]
    n = len(rows) - len(names)
    return enumeration([*names, _n("{n} other", "{n} others", n=n)] if n else names)


def constant_groups(rows: Sequence[MemoryRow]) -> list[list[MemoryRow]]:
    """Return groups of constant memories of similar size, the smallest first.

    The groups are separated by the largest gaps between successive sizes on a logarithmic axis.
    """
    fixed = sorted((row for row in rows if not row.grown_bytes), key=_bytes)
    gaps = [(after.state_bytes / before.state_bytes, i) for i, (before, after) in enumerate(pairwise(fixed), 1)]
    largest = sorted((gap for gap in gaps if gap[0] >= MIN_GAP), reverse=True)[: MAX_GROUPS - 1]
    return [fixed[start:end] for start, end in pairwise([0, *sorted(i for _gap, i in largest), len(fixed)])]


def constant_line(group: Sequence[MemoryRow]) -> Curve:
    """Return a horizontal line at the memory of the best-known variant of a group, with a band over the others' sizes.

    The tooltip lists the memories of all variants.
    """
    rows = known_first(group)
    sizes = [row.state_bytes / KIB for row in rows]
    low, high = min(sizes), max(sizes)
    note = "<br>".join(f"{label(ac.from_word(row.variant))}: {memory(row.state_bytes)}" for row in rows)
    if n := len(rows) - 1:
        names = _("{name}, {n} more", name=_(ac.from_word(rows[0].variant).title), n=n)
    else:
        names = label(ac.from_word(rows[0].variant))
    scale, unit = next((scale, unit) for unit, scale in UNITS.items() if high >= scale)
    least, most = (number(size / scale, 3) for size in (low, high))
    extent = f"{most} {unit}" if least == most else _("{low} to {high}", low=least, high=f"{most} {unit}")
    return Curve(
        # The name may break into two lines only after the colon.
        _("{name}: {size}", name=_unbroken(names), size=_unbroken(extent)),
        TOKEN_COUNTS,
        [sizes[0]] * len(TOKEN_COUNTS),
        low=[low] * len(TOKEN_COUNTS),
        high=[high] * len(TOKEN_COUNTS),
        colour=CONSTANT_COLOUR,
        markers=False,
        notes=[note] * len(TOKEN_COUNTS),
    )


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{NON-BREAKING HYPHEN}")


def softmax_crossing(linear: MemoryRow) -> Curve:
    """Return the point at which the memory of softmax passes the memory of linear attention."""
    text = _(
        "from {n:,} tokens on, softmax<br>needs more than {name}",
        name=_(ac.from_word(linear.variant).title),
        n=linear.outgrown,
    )
    name = text.replace("<br>", " ")
    return Curve(
        name,
        [linear.state_bytes / linear.token_bytes],
        [linear.state_bytes / KIB],
        colour=SOFTMAX_COLOUR,
        symbol="circle-open",
        size=11,
        notes=[name],
        label=text,
        name_at_end=False,
    )


def growing_lines(rows: Sequence[MemoryRow]) -> list[Curve]:
    """Return one line per size of growing memory. Variants with the same size share a line."""
    growing = sorted((row for row in rows if row.grown_bytes), key=_bytes)
    lines = []
    for size, group in groupby(growing, key=_bytes):
        same = known_first(list(group))
        attentions, name = [ac.from_word(row.variant) for row in same], group_name(same)
        sizes, is_last = [size[1] + n * size[0] for n in TOKEN_COUNTS], size == _bytes(growing[-1])
        lines.append(
            Curve(
                name,
                TOKEN_COUNTS,
                [each / KIB for each in sizes],
                colour=SOFTMAX_COLOUR if is_last else GROWING_COLOUR,
                markers=False,
                notes=["<br>".join([memory(each), *map(label, attentions)]) for each in sizes],
            )
        )
    return lines


def _chart(rows: Sequence[MemoryRow], heads: int) -> None:
    crossing = softmax_crossing(linear_row(rows))
    lines = [*map(constant_line, constant_groups(rows)), *growing_lines(rows)]
    show_lines(
        [*reversed(lines), crossing],  # The legend lists the lines in the order of their right ends, from the top.
        key="causal.memory",
        name="causal-memory",
        alt=_("Lines: memory of the variants against the number of tokens"),
        x_title=_("tokens so far"),
        y_title=_n("memory of one layer, {n} head", "memory of one layer, all {n} heads", n=heads),
        log_x=True,
        log_y=True,
        x_ticks=TOKEN_COUNTS[:: 4 if chart.is_narrow() else 2],
        y_ticks=TICKS,
        mark=(crossing.x[0], crossing.label),
        max_bands=MAX_GROUPS,
        height=HEIGHT,
    )


def _bytes(row: MemoryRow) -> tuple[int, int]:
    return row.grown_bytes, row.state_bytes


def table(
    rows: Sequence[MemoryRow], learned: Sequence[ac.Attention], unable: Sequence[ac.Attention]
) -> list[dict[str, Any]]:
    """Return the lines of the table: softmax, constant memory, growing memory, and variants that cannot generate text.

    In each group, the smallest memory comes first.
    """

    def order(row: MemoryRow) -> tuple[int, ...]:
        return (row.variant != REFERENCE, row.grown_bytes > 0, *_bytes(row))

    lines = [(ac.from_word(row.variant), size_text(row), cheaper_from(row)) for row in sorted(rows, key=order)]
    for group, text in ((learned, _("only if trained for it")), (unable, _("cannot generate text"))):
        lines += [(attention, text, "—") for attention in group]
    return [dict(zip(titles(), (label(attention), *cells), strict=True)) for attention, *cells in lines]


def titles() -> tuple[str, ...]:
    """Return the titles of the table's columns."""
    return _("Variant"), _("Memory"), _("Fewer multiply-adds than softmax")


def cheaper_from(row: MemoryRow) -> str:
    """Return the length from which a variant takes fewer multiply-adds than softmax, in words."""
    if row.variant == REFERENCE:
        return _("reference")
    if row.cheaper is None:
        return _("never")
    return _("at any length") if row.cheaper == 1 else _("from {n:,} tokens", n=row.cheaper)
