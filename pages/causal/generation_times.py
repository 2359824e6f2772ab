"""The sentences and the chart of the time per new token, for the Generation chapter of the Causal page."""

from collections.abc import Mapping, Sequence

import attention_core as ac
from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.figures.lines.machine_stamp import add_machine_stamp
from app.jobs import dispatch
from app.ui import chart, palette
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import axis_title, in_words, label
from app.words.measured_times import Series, crossings, missing_text, slower_text, stamp_lines
from attention_core.benchmarking.run_file import recorded_runs
from attention_core.benchmarking.run_records import Run
from attention_core.benchmarking.run_summary import REFERENCE, crossing, ratios, variant_points
from attention_core.experiments import generation
from attention_core.formatting import format_interpolated, number

HEIGHT = 420


def recorded_run() -> Run:
    """Return the recorded run of decode steps."""
    return next(run for run in recorded_runs().values() if run.spec.mode == "decode")


def timed_lines(
    run: Run, attentions: Sequence[ac.Attention], colours: Mapping[int, int], *, live: bool
) -> list[Series]:
    """Return the timings in a run of softmax and of each variant that the run measured with its current settings."""
    names = {REFERENCE: _("Softmax, key-value cache")} | {a.word: label(a) for a in attentions}
    return [
        Series(
            run=run,
            word=word,
            name=name,
            colour=colours.get(own := palette.index(word.partition("~")[0]), own),
            live=live,
            points=points,
            ratios=ratios(run, word),
        )
        for word, name in names.items()
        if (points := variant_points(run, word))
    ]


def _heads_text(heads: int, d: int) -> str:
    return _n("{n} head of size {d}", "{n} heads of size {d}", n=heads, d=d)


def time_details(lines: Sequence[Series]) -> str:
    """Return what each new token reads, and the results that the headline does not have."""
    by_kind = crossings(lines)
    faster = [text for _tokens, _name, text in (*by_kind.get("below", []), *by_kind.get("at", []))]
    even, slower = ([name for _tokens, name, _text in by_kind.get(kind, [])] for kind in ("even", "beyond"))
    return paragraph(
        _(
            "For each new token, softmax reads the keys and values of all tokens so far. The other variants read a "
            "state of fixed size."
        ),
        _short_text_reason(lines),
        _state_text(lines),
        _("Also faster than softmax: {names}.", names=enumeration(faster[1:])) if faster[1:] else "",
        slower_text("even", even) if even else "",
        # If a variant is faster, the headline also names the slowest one. Otherwise, it says that no variant is faster.
        # A list that would only repeat this is left out.
        slower_text("beyond", slower) if slower and (len(slower) > 1 if faster else even) else "",
        missing_text(lines[0].run),
    ).replace("**", "")


def _short_text_reason(lines: Sequence[Series]) -> str:
    """Return why softmax is the fastest at the shortest length; empty if it is not."""
    shortest = [line.ratios[0] for line in lines if line.ratios and not line.is_reference]
    if not shortest or min(ratio.middle for ratio in shortest) <= 1:
        return ""
    return _(
        "At {n:,} tokens, softmax is the fastest: one fused kernel computes its step, whereas the other variants run "
        "many small operations.",
        n=shortest[0].n,
    )


def _state_text(lines: Sequence[Series]) -> str:
    """Return how much larger the state of the slowest variant is than that of the fastest.

    The text is empty if the slowest variant is not slower than softmax, or if its state is less than twice as large.
    """
    compared = [(line, point) for line in lines if not line.is_reference and (point := crossing(line.ratios))]
    by_time = sorted(compared, key=lambda each: each[0].ratios[-1].middle)
    if not by_time or by_time[-1][1].where != "beyond":
        return ""
    (fastest, _first_point), (slowest, _last_point) = by_time[0], by_time[-1]
    spec = slowest.run.spec
    tasks = generation.tasks([slowest.word, fastest.word], heads=spec.heads, d=spec.head_size, d_v=spec.head_size)
    large, small = (row.state_bytes for task in tasks for row in dispatch.rows("generation", task, in_process=True))
    if large < 2 * small:
        return ""
    return _(
        "At head size {d}, the state of {name} is {ratio} times as large as that of {other}, so each token takes "
        "longer.",
        d=spec.head_size,
        name=escape_markdown(in_words(slowest.name)),
        ratio=number(large / small),
        other=escape_markdown(in_words(fastest.name)),
    )


def time_text(lines: Sequence[Series]) -> str:
    """Return which variant is faster than softmax from the shortest length on, and which is slowest at the longest.

    The text is empty without a variant whose time can be compared with softmax.
    """
    found = [(line, point) for line in lines if not line.is_reference and (point := crossing(line.ratios)) is not None]
    if not found:
        return ""
    faster = [(line, point) for line, point in found if point.where in ("below", "at")]
    slower = [line for line, point in found if point.where == "beyond"]
    sizes = _heads_text(lines[0].run.spec.heads, lines[0].run.spec.head_size)
    if not faster:
        longest = max(line.ratios[-1].n for line, _point in found)
        text = N_("**Per new token ({sizes}), no variant shown is faster than softmax at {n:,} tokens.**")
        return _(text, sizes=sizes, n=longest)
    first, point = min(faster, key=lambda each: (each[1].where == "at", each[1].tokens))
    name = escape_markdown(in_words(first.name))
    if point.where == "below":
        text = N_("Per new token ({sizes}), {name} is faster than softmax at every measured length.")
    else:
        text = N_("Per new token ({sizes}), {name} is faster than softmax from about {n} tokens on.")
    text = _(text, sizes=sizes, name=name, n=format_interpolated(point.tokens))
    if not slower:
        return f"**{text}**"
    slowest = max(slower, key=lambda line: line.ratios[-1].middle)
    other = _(
        "{name} is still slower at {n:,} tokens.", name=escape_markdown(in_words(slowest.name)), n=slowest.ratios[-1].n
    )
    return f"**{paragraph(text, other)}**"


def _first_crossing(lines: Sequence[Series]) -> tuple[float, str] | None:
    """Return the shortest length from which a variant is faster than softmax, and the label there; None without one."""
    if not (found := crossings(lines).get("at")):
        return None
    tokens, name, _text = found[0]
    return tokens, _("{name} is faster<br>from about {n} tokens on", name=name, n=format_interpolated(tokens))


def draw_chart(lines: Sequence[Series], key: str) -> None:
    """Draw the median time per new token against the length, with quartiles; recorded times have hollow markers."""
    times = []
    for line in lines:
        low, middle, high = zip(*(point.quartiles for point in line.points), strict=True)
        times.append(
            Curve(
                line.name,
                [point.n for point in line.points],
                middle,
                low=low,
                high=high,
                colour=line.colour,
                hollow=not line.live,
            )
        )
    sizes = sorted({point.n for line in lines for point in line.points})
    y_title = _("ms per new token")
    if lines:
        spec = lines[0].run.spec
        y_title = _("{title}, {heads}", title=y_title, heads=_heads_text(spec.heads, spec.head_size))
    figure = curves(
        times,
        x_title=axis_title(_("tokens so far"), log=True),
        y_title=axis_title(y_title, log=True),
        log_x=True,
        log_y=True,
        mark=_first_crossing(lines),
        x_ticks=sizes[:: 2 if chart.is_narrow() else 1],
        height=HEIGHT,
    )
    stamps = [stamp_lines(lines[0].run, live=lines[0].live, only_run=True)] if lines else []
    chart.show(
        add_machine_stamp(figure, stamps, narrow=chart.is_narrow()),
        key=key,
        name="generation-time",
        alt=_("Lines: milliseconds per new token against the number of tokens so far"),
    )
