"""The Generation view: memory and time per new token, with a key-value cache and with the constant recurrent states."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

import attention_core as ac
from app.figures.curves import Curve, curves
from app.figures.timing import add_machine_stamp
from app.jobs import dispatch
from app.jobs.timing_runs import Series, crossing_text, run_here, stamp_lines, summary_text
from app.ui import chart, export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_popover
from app.ui.palette import place
from app.ui.scope import Scope
from app.words.i18n import _, paragraph
from app.words.labels import label
from attention_core.benchmarking.records import Run
from attention_core.benchmarking.run_file import recorded
from attention_core.benchmarking.summary import REFERENCE, of_variant, ratios
from attention_core.benchmarking.timing import TimingSpec
from attention_core.experiments import generation
from attention_core.experiments.generation import MemoryRow
from attention_core.formatting import MIB, memory
from attention_core.limits import current
from attention_core.registry import recurrent, smaller_caches
from pages.causal.legend import bold, places, with_settings

SHORTEST, LONGEST = 64, 16_384
HEIGHT = 420
STROKES = ("solid", "32px,8px", "24px,16px", "16px,24px", "8px,32px")
"""Dash patterns of states with the same period and decreasing coverage, so that overlapping lines stay visible."""


def show(chosen: ChosenInput) -> None:
    """Draw the view: the sentence, the charts of bytes and of time, the table and the method."""
    attentions = with_settings(recurrent())
    heads, d, d_v = chosen.qkv.heads, chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    words = _words()
    tasks = generation.tasks(words, heads=heads, d=d, d_v=d_v)
    held = [row for task in tasks for row in dispatch.rows("generation", task, in_process=True)]
    spec = TimingSpec(
        variants=(REFERENCE, *(a.word for a in attentions)),
        sizes=_sizes(heads * d),
        mode="decode",
        heads=heads,
        head_size=d,
    )
    row = st.container(horizontal=True, vertical_alignment="center")

    def draw(run: Run | None, key: str) -> None:
        own = run is not None and (run.spec.heads, run.spec.head_size, run.spec.dtype) == (heads, d, spec.dtype)
        _draw(chosen, attentions, held, run if run is not None and own else None, f"causal.generation.{key}")

    run_here(spec, row, draw)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chart.choose_format()
        _method(chosen)


def _words() -> list[str]:
    """Return the words of the variants whose states and caches are compared."""
    return [a.word for a in (*with_settings(recurrent()), *with_settings(smaller_caches()))]


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the view: sizes of all heads together."""
    return replace(input_panel.scope(chosen), head=None, aggregation="each", variants=(REFERENCE, *_words()))


def _sizes(width: int) -> tuple[int, ...]:
    """Return the measured lengths, in powers of two, up to the longest one within the limits."""
    limits = current()
    longest = max(SHORTEST, min(LONGEST, limits.timed_tokens, limits.synthetic_numbers // width))
    return tuple(2**i for i in range(SHORTEST.bit_length() - 1, longest.bit_length()))


def _draw(
    chosen: ChosenInput, attentions: Sequence[ac.Attention], held: Sequence[MemoryRow], run: Run | None, key: str
) -> None:
    colours = places([REFERENCE, *(row.variant.partition("~")[0] for row in held)])
    shipped = next(other for other in recorded().values() if other.spec.mode == "decode")
    lines = _series(run or shipped, attentions, colours, live=run is not None)
    by_word = {line.word: line for line in lines}
    timed = [where_timed(lines[0].run.spec, live=lines[0].live), summary_text(lines)] if len(lines) > 1 else []
    st.markdown(paragraph(sentence(held, chosen.qkv.heads, chosen.qkv.q.shape[-1]), *timed))
    left, right = st.columns(2)
    with left:
        st.markdown("## " + _("Held for the next token, all heads"), anchors=False)
        _bytes_chart(chosen, [row for row in held if not _is_cache(row)], colours, f"{key}.bytes")
    with right:
        st.markdown("## " + _("Time of one new token"), anchors=False)
        _time_chart(lines, f"{key}.time")
        if run is None:
            st.caption(
                _(
                    "Press the button to measure this input's {own} heads of {size}.",
                    own=chosen.qkv.heads,
                    size=chosen.qkv.q.shape[-1],
                )
            )
    st.markdown("## " + _("Smaller caches, all heads"), anchors=False)
    _bytes_chart(chosen, [row for row in held if _is_cache(row)], colours, f"{key}.caches")
    _table(held, by_word, run or shipped, live=run is not None, key=key)
    if key.endswith("end"):
        export.download(_("Numbers (CSV)"), lambda: _csv(held, lines), "generation.csv")


def _series(run: Run, attentions: Sequence[ac.Attention], colours: dict[str, int], *, live: bool) -> list[Series]:
    """Return the timings of softmax and of the variants that the run measured with these settings."""
    names = {REFERENCE: _("Softmax, key-value cache")} | {a.word: label(a) for a in attentions}
    return [
        Series(
            run=run,
            word=word,
            name=name,
            colour=colours[word.partition("~")[0]],
            live=live,
            points=points,
            ratios=ratios(run, word),
        )
        for word, name in names.items()
        if (points := of_variant(run, word))
    ]


def where_timed(spec: TimingSpec, *, live: bool) -> str:
    """Return the words that introduce times measured here, or times from a recorded run."""
    if live:
        return _("**Time measured here, {heads} heads of {d}:**", heads=spec.heads, d=spec.head_size)
    return _("**Time from a recorded run, {heads} heads of {d}:**", heads=spec.heads, d=spec.head_size)


def sentence(held: Sequence[MemoryRow], heads: int, d: int) -> str:
    """Return the lengths from which a cache holds more than the smallest and more than the largest state."""
    rows = sorted((row for row in held if not row.grown_bytes), key=lambda row: row.outgrown or 0)
    first, last = rows[0], rows[-1]
    text = _(
        "Every token adds {token} to a key-value cache ({heads} heads of {d}): from **{soon:,}** tokens on it holds "
        "more than {first}'s constant {small}, from **{late:,}** on more than {last}'s {large}.",
        token=memory(first.token_bytes),
        heads=heads,
        d=d,
        soon=first.outgrown,
        first=bold([_name(first)]),
        small=memory(first.state_bytes),
        late=last.outgrown,
        last=bold([_name(last)]),
        large=memory(last.state_bytes),
    )
    growing = sorted((row for row in held if row.grown_bytes), key=lambda row: row.grown_bytes)
    return paragraph(
        text,
        *(
            _(
                "{name} adds {grown} for every token, {share:.0%} of that.",
                name=bold([_name(row)]),
                grown=memory(row.grown_bytes),
                share=row.grown_bytes / row.token_bytes,
            )
            for row in growing
        ),
    )


def _is_cache(row: MemoryRow) -> bool:
    """Return whether a variant keeps a smaller cache, in contrast to a state that replaces the cache."""
    return ac.from_word(row.variant).variant.family == "cache"


def _name(row: MemoryRow) -> str:
    return label(ac.from_word(row.variant))


def _smaller_from(outgrown: int | None) -> str:
    """Return, in words, the length from which a key-value cache holds more."""
    if outgrown is None:
        return _("never")
    return _("the first token") if outgrown == 1 else _("{n:,} tokens", n=outgrown)


def _kept(row: MemoryRow) -> str:
    """Return the bytes held, in words: the constant part and the part per token."""
    if not row.grown_bytes:
        return memory(row.state_bytes)
    each = _("{grown} a token", grown=memory(row.grown_bytes))
    return f"{memory(row.state_bytes)} + {each}" if row.state_bytes else each


def _first(alike: Sequence[MemoryRow]) -> MemoryRow:
    return min(alike, key=lambda row: place(row.variant.partition("~")[0]))


def of_all(alike: Sequence[MemoryRow]) -> str:
    """Return the label of one line for variants that hold equally much; the table names all of them."""
    first = _first(alike)
    if len(alike) == 1:
        return f"{_name(first)}: {_kept(first)}"
    return _("{name} and {n} more: {kept}", name=_name(first), n=len(alike) - 1, kept=_kept(first))


def _bytes_chart(chosen: ChosenInput, held: Sequence[MemoryRow], colours: dict[str, int], key: str) -> None:
    longest = max(LONGEST, *(2 * (row.outgrown or 0) for row in held))
    ends = [2**i for i in range(longest.bit_length() + 1)]
    cache = [n * held[0].token_bytes / MIB for n in ends]
    lines = [Curve(_("Softmax, key-value cache"), ends, cache, colour=colours[REFERENCE], marks=False)]
    # Overlapping lines stay visible: each dash pattern covers less of the same period than the line below it.
    alike: dict[tuple[int, int], list[MemoryRow]] = {}
    for row in held:
        alike.setdefault((row.state_bytes, row.grown_bytes), []).append(row)
    order = sorted((_first(rows) for rows in alike.values()), key=lambda row: -row.state_bytes)
    strokes = {row.variant: STROKES[place % len(STROKES)] for place, row in enumerate(order)}
    for row in sorted(order, key=lambda row: STROKES.index(strokes[row.variant])):
        at, dash, colour = row.outgrown, strokes[row.variant], colours[row.variant.partition("~")[0]]
        name = of_all(alike[row.state_bytes, row.grown_bytes])
        # On two logarithmic axes a rising line is bent, so it needs a point at each length.
        along = ends if row.grown_bytes else [ends[0], ends[-1]]
        kept = [(row.state_bytes + n * row.grown_bytes) / MIB for n in along]
        lines.append(Curve(name, along, kept, colour=colour, marks=False, dash=dash))
        if at is not None:
            notes = [_("{name}: the cache outgrows it at {n:,} tokens", name=name, n=at)]
            height = (row.state_bytes + at * row.grown_bytes) / MIB
            lines.append(Curve(name, [at], [height], colour=colour, notes=notes, hollow=True, name_at_end=False))
    figure = curves(
        lines,
        x_title=_("tokens so far (upright line: this input)"),
        y_title=_("MiB held"),
        log_x=True,
        log_y=True,
        mark=chosen.qkv.n,
        x_ticks=ends[::2],
        height=HEIGHT,
    )
    chart.show(
        figure,
        key=key,
        name="generation-" + key.rpartition(".")[-1],
        alt=_("Lines: bytes held against the number of tokens, growing caches and constant states"),
    )


def _time_chart(lines: Sequence[Series], key: str) -> None:
    drawn = []
    for line in lines:
        low, middle, high = zip(*(point.quartiles for point in line.points), strict=True)
        drawn.append(
            Curve(
                line.name,
                [point.n for point in line.points],
                middle,
                low=low,
                high=high,
                colour=line.colour,
                dash="solid" if line.live else "dash",
                hollow=not line.live,
            )
        )
    sizes = sorted({point.n for line in lines for point in line.points})
    figure = curves(
        drawn,
        x_title=_("tokens so far"),
        y_title=_("ms per new token"),
        log_x=True,
        log_y=True,
        x_ticks=sizes[::2],
        height=HEIGHT,
    )
    stamp = stamp_lines(lines[0].run, live=lines[0].live) if lines else []
    chart.show(
        add_machine_stamp(figure, stamp),
        key=key,
        name="generation-time",
        alt=_("Lines: milliseconds per new token against the number of tokens so far"),
    )


def _table(held: Sequence[MemoryRow], by_word: dict[str, Series], run: Run, *, live: bool, key: str) -> None:
    """Draw the table of bytes and times. The bytes belong to this input; the headings of the times name their run."""
    n = max(run.spec.sizes)
    where = _("measured here") if live else _("recorded {heads} × {d}", heads=run.spec.heads, d=run.spec.head_size)
    faster, ms = _("faster from, {where}", where=where), _("ms at {n:,}, {where}", n=n, where=where)
    shown = []
    for row in held:
        line = by_word.get(row.variant)
        last = next((point for point in line.points if point.n == n), None) if line else None
        shown.append(
            {
                _("variant"): _name(row),
                _("state"): memory(row.state_bytes) if row.state_bytes else _("none"),
                _("each token adds"): memory(row.grown_bytes) if row.grown_bytes else _("nothing"),
                _("smaller from"): _smaller_from(row.outgrown),
                faster: crossing_text(line) if line else "",
                ms: last.quartiles[1] if last else None,
            }
        )
    column = st.column_config
    st.dataframe(
        shown,
        hide_index=True,
        key=f"{key}.table",
        column_config={
            _("state"): column.TextColumn(help=_("Of all heads of this input, constant.")),
            _("each token adds"): column.TextColumn(
                help=_("To a key-value cache each adds {token}.", token=memory(held[0].token_bytes))
            ),
            _("smaller from"): column.TextColumn(help=_("From so many tokens on a key-value cache holds more.")),
            faster: column.TextColumn(
                help=_("From so many tokens on a step is faster than softmax's; heads × head size are the run's.")
            ),
            ms: column.NumberColumn(format="%.3g", help=_("Milliseconds per new token after so many tokens.")),
        },
    )


def _method(chosen: ChosenInput) -> None:
    def draw() -> None:
        st.latex(
            r"\text{cache} = n\,(d + d_v)\,H\cdot 4\ \text{bytes},\qquad \text{state} \approx C\,(d_v + 1)\,H\cdot 4"
        )
        st.markdown(
            _(
                "- **Bytes** are those of the tensors that a decoder keeps after one step, in float32.\n"
                "- **C** is d for linear attention, the number of random features for Performer, and "
                "1 + d + d (d + 1) / 2 for the second-order Taylor series: {wide:,} here, so its state is smaller than "
                "a cache only for long texts.\n"
                "- **Smaller caches** hold what their settings say: a key and a value for each group of heads, two "
                "latents of a token with what makes keys and values of them, or sums by code. What chooses latents and "
                "codes saw the whole text; in generating it would have to stand before.\n"
                "- **Time** is one step from a state, or one query against a cache of n keys and values that the new "
                "token has just entered; {heads} heads of {d}, values as wide as keys.",
                wide=1 + (d := chosen.qkv.q.shape[-1]) + d * (d + 1) // 2,
                heads=chosen.qkv.heads,
                d=d,
            )
        )

    lazy_popover(_("How it is measured"), draw, key="causal.measured", icon=":material/menu_book:", type="tertiary")


def _csv(held: Sequence[MemoryRow], lines: Sequence[Series]) -> bytes:
    rows: list[list[object]] = [
        [row.variant, row.state_bytes, row.grown_bytes, row.token_bytes, row.outgrown, None, None, None] for row in held
    ]
    rows += [[x.word, None, None, None, None, p.n, i, ms] for x in lines for p in x.points for i, ms in enumerate(p.ms)]
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
    return export.to_csv(header, rows)
