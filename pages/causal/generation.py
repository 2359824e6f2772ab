"""The Generation chapter of the Causal page: time and memory per new token.

It compares a key-value cache, which grows with the text, with recurrent states of constant size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.lines.curve import Curve
from app.figures.theme import separate_colours
from app.jobs import dispatch
from app.jobs.timing_runs import run_on_machine
from app.ui import export, input_panel, palette
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.finding import Finding
from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import label
from app.words.measured_times import Series
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.run_summary import REFERENCE
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments import generation
from attention_core.experiments.generation import MemoryRow
from attention_core.formatting import memory
from attention_core.limits import current
from attention_core.registry import recurrent, smaller_caches
from pages.causal.generation_times import HEIGHT, draw_chart, recorded_run, time_details, time_text, timed_lines
from pages.causal.shared import KIB, TICKS, bold, show_lines, size_text, with_settings

MIN_LENGTH, MAX_LENGTH = 64, 16_384
TIMED = ("cosine", "linear", "performer", "retention", "taylor2")
"""Variants whose time per token is shown; the Timing page compares all."""
MAX_SIZE_RATIO = 1.1
"""Largest ratio of the sizes of states that share a line, because separate lines would overlap."""


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the view: the sentence, the chart of time, and folded up, the charts of memory and the method."""
    attentions = [attention for attention in with_settings(recurrent()) if attention.key in TIMED]
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = generation.tasks(_variant_words(), heads=heads, d=d, d_v=d_v)
    rows = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    spec = TimingSpec(
        variants=(REFERENCE, *(a.word for a in attentions)),
        sizes=_sizes(heads * d),
        mode="decode",
        heads=heads,
        head_size=d,
    )

    states, caches = (
        [row for row in rows if (ac.from_word(row.variant).variant.family == "cache") == wanted]
        for wanted in (False, True)
    )
    colours, place, finding = line_colours(states, caches), headline.empty(), summary(states, heads, d)

    def draw(run: Run | None, key: str) -> None:
        is_comparable = run is not None and (run.spec.heads, run.spec.head_size, run.spec.dtype) == (
            heads,
            d,
            spec.dtype,
        )
        shown = run if is_comparable else None
        lines = _draw_times(attentions, rows, shown, f"causal.generation.{key}", colours)
        place.markdown(time_text(lines) or finding.text)

    def draw_memory() -> None:
        st.markdown(paragraph(finding.text.replace("**", ""), finding.explanation))
        st.caption(_("To the right of a variant's marker, its state is smaller than softmax's key-value cache."))
        _memory_chart(chosen, states, "causal.generation.bytes", colours)
        st.caption(
            _(
                "These caches grow more slowly than softmax's key-value cache, or not at all. Latent attention and "
                "quantised keys can generate text only if they are trained for it."
            )
        )
        _memory_chart(chosen, caches, "causal.generation.caches", colours)

    row = st.container(horizontal=True, vertical_alignment="center")
    row.markdown("## " + _("Time per new token"), anchors=False, width="content")
    run_on_machine(spec, row, draw)
    lazy_expander(_("Memory of states and smaller caches"), draw_memory, key="causal.smaller")
    _method(chosen)


def line_colours(*memory_charts: Sequence[MemoryRow]) -> dict[int, int]:
    """Return the colour of each line of the view by the variant's own, so that a variant has one colour in all charts.

    Args:
        memory_charts: variants of each chart of memory. The chart of time shows ``TIMED``.
    """
    groups = [group for rows in memory_charts for group in group_by_size(rows)]
    lines = [row for group in groups for row in group if _is_timed(row) or row is _coloured(group)]
    return separate_colours([palette.index(REFERENCE), *map(_colour, lines)])


def _colour(row: MemoryRow) -> int:
    return palette.index(row.variant.partition("~")[0])


def _is_timed(row: MemoryRow) -> bool:
    return row.variant.partition("~")[0] in TIMED


def _coloured(group: Sequence[MemoryRow]) -> MemoryRow:
    """Return the variant whose colour a group has: one that the chart of time shows, if there is one."""
    return min(group, key=lambda row: (not _is_timed(row), _colour(row)))


def _variant_words() -> list[str]:
    """Return the variants whose states or caches are compared, as text such as ``local~window~16``."""
    return [a.word for a in (*with_settings(recurrent()), *with_settings(smaller_caches()))]


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the view: sizes of all heads together."""
    words = (REFERENCE, *_variant_words())
    result = replace(input_panel.scope(chosen), head=None, aggregation="each", variants=words)
    text = _("Times on random inputs · memory for {input}", input=input_panel.headline(chosen.source, result))
    return replace(result, subtitle=text)


def _sizes(width: int) -> tuple[int, ...]:
    """Return the measured lengths, in powers of two, up to the longest one within the limits."""
    limits = current()
    longest = max(MIN_LENGTH, min(MAX_LENGTH, limits.timed_tokens, limits.synthetic_numbers // width))
    return tuple(2**i for i in range(MIN_LENGTH.bit_length() - 1, longest.bit_length()))


def _draw_times(
    attentions: Sequence[ac.Attention], rows: Sequence[MemoryRow], run: Run | None, key: str, colours: Mapping[int, int]
) -> list[Series]:
    """Draw the times of a run, or of the recorded run without one, and return them."""
    lines = timed_lines(run or recorded_run(), attentions, colours, live=run is not None)
    draw_chart(lines, f"{key}.time")
    if len(lines) > 1:
        st.markdown(time_details(lines))
    if key.endswith("end"):
        export.download(_("Numbers (CSV)"), lambda: _csv(rows, lines), "generation.csv")
    return lines


def summary(rows: Sequence[MemoryRow], heads: int, d: int) -> Finding:
    """Return the lengths from which a key-value cache is larger than the smallest of the states, and than all."""
    first, *_others, last = sorted(rows, key=lambda row: (row.outgrown or 0, row.state_bytes))
    return Finding(
        _(
            "**From {n:,} tokens on, the smallest recurrent state ({name}, {size}) is smaller than a key-value "
            "cache.**",
            name=escape_markdown(_name(first)),
            size=memory(first.state_bytes),
            n=first.outgrown,
        ),
        paragraph(
            _n(
                "The cache stores every key and value, so it grows by {token} per token ({n} head of size {d}).",
                "The cache stores every key and value, so it grows by {token} per token ({n} heads of size {d}).",
                token=memory(first.token_bytes),
                n=heads,
                d=d,
            ),
            _(
                "From {n:,} tokens on, the cache is larger than every recurrent state, even that of {name} ({size}).",
                name=bold([_name(last)]),
                size=memory(last.state_bytes),
                n=last.outgrown,
            ),
        ),
    )


def _name(row: MemoryRow) -> str:
    return label(ac.from_word(row.variant))


def group_by_size(rows: Sequence[MemoryRow]) -> list[list[MemoryRow]]:
    """Group constant states whose sizes differ by at most ``MAX_SIZE_RATIO``; a growing cache is a group of its own."""
    groups: list[list[MemoryRow]] = []
    for row in sorted(rows, key=lambda row: (row.grown_bytes, row.state_bytes)):
        smallest = groups[-1][0] if groups else None
        if smallest and not row.grown_bytes and row.state_bytes <= MAX_SIZE_RATIO * smallest.state_bytes:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _smallest(rows: Sequence[MemoryRow]) -> MemoryRow:
    return min(rows, key=_colour)


def group_name(rows: Sequence[MemoryRow]) -> str:
    """Return the label of one line for variants of similar size."""
    sizes = list(dict.fromkeys(map(size_text, rows)))
    size = sizes[0] if len(sizes) == 1 else _("{low} to {high}", low=sizes[0], high=sizes[-1])
    return _("{name}: {size}", name=_abbreviated(_name(_smallest(rows)), len(rows) - 1), size=size)


def group_short_name(rows: Sequence[MemoryRow]) -> str:
    """Return the label of a chart's line that represents variants with similar memory.

    It has two names, or one name and the number of the others.
    """
    if len(rows) == 2:
        return enumeration(_(ac.from_word(row.variant).title) for row in rows)
    return _abbreviated(_(ac.from_word(_smallest(rows).variant).title), len(rows) - 1)


def _abbreviated(name: str, others: int) -> str:
    return _("{name}, {n} more", name=name, n=others) if others else name


def _memory_chart(chosen: ChosenInput, rows: Sequence[MemoryRow], key: str, colours: Mapping[int, int]) -> None:
    longest = max(MAX_LENGTH, *(2 * (row.outgrown or 0) for row in rows))
    lengths = [2**i for i in range(longest.bit_length() + 1)]
    cache = [n * rows[0].token_bytes / KIB for n in lengths]
    name = _("Softmax, key-value cache")
    lines = [Curve(name, lengths, cache, colour=palette.index(REFERENCE), markers=False, label=_("Softmax"))]
    for group in group_by_size(rows):
        row, name = _smallest(group), group_name(group)
        colour = colours[_colour(_coloured(group))]
        # Memory that grows with n is a constant plus a multiple of n. On two logarithmic axes, that is a bent curve,
        # which needs a point at each length.
        xs = lengths if row.grown_bytes else [lengths[0], lengths[-1]]
        sizes = [(row.state_bytes + n * row.grown_bytes) / KIB for n in xs]
        lines.append(Curve(name, xs, sizes, colour=colour, markers=False, label=group_short_name(group)))
        if (crossing := row.outgrown) is not None:
            notes = [_("{name}: from {n:,} tokens on, the state is smaller than the cache", name=name, n=crossing)]
            height = (row.state_bytes + crossing * row.grown_bytes) / KIB
            lines.append(Curve(name, [crossing], [height], colour=colour, notes=notes, hollow=True, name_at_end=False))
    show_lines(
        lines,
        key=key,
        name="generation-" + key.rpartition(".")[-1],
        alt=_("Lines: memory against the number of tokens, for caches that grow and for states of constant size"),
        x_title=_("tokens so far"),
        y_title=_n("memory of one layer, {n} head", "memory of one layer, all {n} heads", n=chosen.qkv.heads),
        log_x=True,
        log_y=True,
        mark=(chosen.qkv.n, _("this input")),
        x_ticks=lengths[::2],
        y_ticks=TICKS,
        height=HEIGHT,
    )


def _method(chosen: ChosenInput) -> None:
    def draw() -> None:
        st.latex(
            r"\text{cache} = n\,(d + d_v)\,H\cdot 4\ \text{bytes},\qquad \text{state} \approx C\,(d_v + 1)\,H\cdot 4"
        )
        st.markdown(
            _(
                "- n is the number of tokens, and H is the number of heads. A key has d entries, and a value has "
                "$d_v$ entries.\n"
                "- **C** is the number of features, which are the entries of a key after the feature map. C is d for "
                "linear attention and the number of random features for Performer. For the second-order Taylor "
                "series, it is 1 + d + d (d + 1) / 2, here {wide:,}.\n"
                "- **Memory** is the size of the tensors that a decoder keeps after one step, in float32.\n"
                "- **Smaller caches**: Grouped queries store one key and one value per token for a group of heads. "
                "Latent attention stores a short vector, the latent, per token. Vector quantisation replaces each "
                "key by one of a few codes and stores sums for each code. Here, latents and codes are fitted to the "
                "whole text.\n"
                "- **Time** is measured for one step from a state, or for one query against a cache of n keys and "
                "values. Values have the same size as keys.",
                wide=1 + (d := chosen.qkv.q.shape[-1]) + d * (d + 1) // 2,
            )
        )

    lazy_expander(_("Method"), draw, key="causal.method")


def _csv(rows: Sequence[MemoryRow], lines: Sequence[Series]) -> bytes:
    cells: list[list[object]] = [
        [row.variant, row.state_bytes, row.grown_bytes, row.token_bytes, row.outgrown, None, None, None] for row in rows
    ]
    cells += [
        [x.word, None, None, None, None, p.n, i, ms] for x in lines for p in x.points for i, ms in enumerate(p.ms)
    ]
    header = (
        "variant",
        "state bytes",
        "added bytes per token",
        "cache bytes per token",
        "outgrown at tokens",
        "tokens",
        "sample",
        "ms",
    )
    return export.to_csv(header, cells)
