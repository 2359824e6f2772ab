"""Texts about running times for several pages: which variants are faster than softmax, and where a run was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.words.finding import Finding
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core.benchmarking.full_matrix_mask import MaskedFullAttention
from attention_core.benchmarking.run_records import Point, Run
from attention_core.benchmarking.run_summary import REFERENCE, Crossing, Ratio, crossing
from attention_core.experiments.timing_length import unfinished
from attention_core.formatting import format_interpolated

FASTER = {
    "below": N_("below {n} tokens"),
    "at": N_("{n} tokens ({range})"),
    "even": N_("no clear difference"),
    "beyond": N_("no measured length"),
}
"""Texts for where a variant becomes faster than softmax, by ``Crossing.where``."""
NEAR_EQUAL = 1.1
"""Largest ratio of two interpolated lengths that one sentence gives as one length."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One variant in one run, ready to draw.

    Attributes:
        run: the run that measured it.
        word: the variant and its settings in the run, as in links: ``local~window~8``.
        name: the name on screen.
        colour: the variant's index in the shared series of colours.
        live: whether the run was made on this machine in this session.
        masked: the implementation that was timed, if it is full attention under the variant's mask; None for the
            variant's own algorithm.
        points: the measurements, by rising length.
        ratios: the variant's time divided by softmax's time.
    """

    run: Run
    word: str
    name: str
    colour: int
    live: bool
    masked: MaskedFullAttention | None = None
    points: list[Point]
    ratios: list[Ratio]

    @property
    def is_reference(self) -> bool:
        """True for softmax, the reference."""
        return self.word.partition("~")[0] == REFERENCE


def faster_finding(series: Sequence[Series]) -> Finding:
    """Return the finding that says which variants of a run are faster than softmax, and from which length on."""
    by_kind = crossings(series)
    if not by_kind:
        return Finding(_("Add a variant to see from which length it is faster than softmax."))
    faster = [*by_kind.get("below", []), *by_kind.get("at", [])]
    count, run, names = sum(map(len, by_kind.values())), series[0].run, ""
    values = {
        "machine": machine_name(series[0]),
        "limits": measured_limits(run),
        "longest": min(
            line.ratios[-1].n for line in series if line.ratios and not line.is_reference and not line.masked
        ),
    }
    if faster:
        values |= {
            "first": format_interpolated(faster[0][0]),
            "earliest": faster[0][1],
            "last": format_interpolated(faster[-1][0]),
            "name": faster[-1][1],
        }
    if not faster:
        text = _("**On {machine}, no variant shown is faster than softmax, even at {longest:,} tokens.**", **values)
    elif len(faster) < count:
        # The group "at" has the variants that are faster only from some length on.
        text = (
            N_("**On {machine}, {n} of {all} variants shown are faster than softmax from about {last} tokens on.**")
            if "at" in by_kind
            else N_("**On {machine}, {n} of {all} variants shown are faster than softmax at every measured length.**")
        )
        text = _(text, n=len(faster), all=count, **values)
        names = _("Faster than softmax: {names}.", names=enumeration(text for _tokens, _name, text in faster))
        if len(faster) == 1:
            names, text = (
                "",
                (
                    _("**On {machine}, only {name} is faster than softmax, from about {last} tokens on.**", **values)
                    if "at" in by_kind
                    else _("**On {machine}, only {name} is faster than softmax, at every measured length.**", **values)
                ),
            )
    elif "at" not in by_kind:
        text = (
            _("**On {machine}, {name} is faster than softmax at every measured length** ({limits}).", **values)
            if len(faster) == 1
            else _(
                "**On {machine}, every variant shown is faster than softmax at every measured length** ({limits}).",
                **values,
            )
        )
    else:
        text = (
            _("**On {machine}, {name} is faster than softmax from about {last} tokens on.**", **values)
            if len(faster) == 1
            else _(
                "**On {machine}, every variant shown is faster than softmax from about {last} tokens on.**", **values
            )
            if "below" in by_kind or faster[-1][0] <= NEAR_EQUAL * faster[0][0]
            else _(
                "**On {machine}, every variant shown is faster than softmax from about {last} tokens on, and "
                "{earliest} already from about {first}.**",
                **values,
            )
        )
    others = (slower_text(kind, [name for _tokens, name, _text in by_kind[kind]]) for kind in FASTER if kind in by_kind)
    fastest_below = _fastest_below(series, by_kind)
    below_note = _("Below about {n} tokens, softmax is the fastest.", n=fastest_below) if fastest_below else ""
    return Finding(text, paragraph(names, below_note, *others, rounds_note(series, by_kind), missing_text(run)))


def rounds_note(series: Sequence[Series], by_kind: Mapping[str, object]) -> str:
    """Return a note if times were measured in only one round; empty otherwise.

    The note is about the lengths from which variants become faster. It is also empty if ``by_kind`` has no variant
    with such a length (no group "at").
    """
    if "at" not in by_kind or min(len(point.ms) for point in series[0].points) > 1:
        return ""
    return _(
        "Each time was measured in only one round, so the lengths from which variants are faster than softmax may "
        "differ in another run."
    )


def machine_name(series: Series, link: str = "") -> str:
    """Return text on the machine that timed a series: its kind, and its name as a link to ``link``, if given."""
    if series.live:
        return _("this server")
    host = series.run.stamp
    device = f"[{escape_markdown(host.device)}]({link})" if link else escape_markdown(host.device)
    if host.device == host.cpu:
        return _n("one CPU core ({device})", "{n} CPU cores ({device})", n=host.threads, device=device)
    return _("a GPU ({device})", device=device)


def crossings(series: Sequence[Series]) -> dict[str, list[tuple[float, str, str]]]:
    """Return ``(tokens, name, text)`` for each variant of a run, grouped by ``Crossing.where``.

    ``tokens`` is the length from which the variant is faster than softmax, ``name`` is its name as Markdown, and
    ``text`` contains both. In the group "at", the variants are in ascending order of ``tokens``.
    """
    by_kind: dict[str, list[tuple[float, str, str]]] = {}
    for line in series:
        point = None if line.is_reference or line.masked else crossing(line.ratios)
        if point is not None:
            name = escape_markdown(in_words(line.name))
            text = _("{name} from about {n} tokens", name=name, n=format_interpolated(point.tokens))
            if point.where == "below":
                text = _("{name} at every measured length", name=name)
            by_kind.setdefault(point.where, []).append((point.tokens, name, text))
    return {key: sorted(entries) if key == "at" else entries for key, entries in by_kind.items()}


def _fastest_below(series: Sequence[Series], by_kind: Mapping[str, Sequence[tuple[float, str, str]]]) -> str:
    """Return the length below which softmax is faster than all other variants; empty without such a length.

    Args:
        series: series of one run.
        by_kind: the lengths from which variants are faster than softmax, by ``Crossing.where``.
    """
    if "at" not in by_kind:
        return ""
    length = min(tokens for tokens, _name, _text in by_kind["at"])
    shorter = [ratio for line in series if not line.masked for ratio in line.ratios if ratio.n < length]
    if any(ratio.middle < 1 for ratio in shorter):
        return ""
    return format_interpolated(length)


def slower_text(kind: str, names: Sequence[str]) -> str:
    """Return a sentence that says that variants are not faster than softmax at the longest length, or "".

    Args:
        kind: the variants' ``Crossing.where``; the sentence is empty unless it is "even" or "beyond".
        names: the variants' names.
    """
    n, joined_names = len(names), enumeration(f"**{name}**" for name in names)
    if kind == "even":
        return _n(
            "{names} shows no clear difference in time from softmax at its longest measured length.",
            "{names} show no clear difference in time from softmax at their longest measured lengths.",
            n=n,
            names=joined_names,
        )
    if kind == "beyond":
        return _n(
            "{names} is slower than softmax at its longest measured length.",
            "{names} are slower than softmax at their longest measured lengths.",
            n=n,
            names=joined_names,
        )
    return ""


def measured_limits(run: Run) -> str:
    """Return the numbers of tokens for which a run measured times: the smallest and the largest."""
    first, last = run.spec.sizes[0], run.spec.sizes[-1]
    return _("{first:,} to {last:,} tokens", first=first, last=last) if first < last else _("{n:,} tokens", n=last)


def _range(point: Crossing) -> str:
    """Return the measured lengths between which a variant becomes faster than softmax, judged by the quartiles."""
    if point.slower is None:
        return _("up to {n:,}", n=point.faster or 0)
    return _("{low:,} to {high:,}", low=point.slower, high=point.faster or 0)


def missing_text(run: Run) -> str:
    """Return a sentence that says how far an incomplete run has come; empty for a complete run."""
    missing = unfinished(run)
    if missing is None:
        return ""
    if missing.rounds:
        return _("Incomplete run: {count} of {all} rounds are finished.", count=missing.rounds, all=run.spec.rounds)
    if missing.tokens is None:
        return _("Incomplete run: some variants are not yet measured, even at the shortest length.")
    return _(
        "Incomplete run: so far, all variants are measured up to {n:,} tokens; the longest planned length is "
        "{longest:,} tokens.",
        n=missing.tokens,
        longest=run.spec.sizes[-1],
    )


def crossing_text(line: Series) -> str:
    """Return the length from which a variant is faster than softmax, as the text of a table cell."""
    point = crossing(line.ratios)
    if point is None:
        return ""
    n = format_interpolated(point.tokens) if point.where == "at" else f"{point.tokens:,.0f}"
    text = _(FASTER[point.where], n=n, range=_range(point))
    return _("{text}, so far", text=text) if unfinished(line.run) else text


def stamp_lines(run: Run, *, live: bool, only_run: bool = False) -> list[str]:
    """Return lines that say where, how and when a run was measured, each short enough for a narrow figure.

    Args:
        run: the run.
        live: whether the run was made on this machine in this session.
        only_run: whether the figure draws no other run. The text then does not say which curves (solid or dashed)
            belong to the run.
    """
    host, spec = run.stamp, run.spec
    mode = {"forward": _("forward"), "backward": _("forward + backward"), "decode": _("decode step")}[spec.mode]
    setup = {"mode": mode, "dtype": spec.dtype, "d": spec.head_size}
    setup["heads"] = _n("{n} head", "{n} heads", n=spec.heads)
    if only_run:
        origin = (
            _("live run on {device}", device=host.device) if live else _("recorded run on {device}", device=host.device)
        )
    elif live:
        origin = _("solid lines: live run on {device}", device=host.device)
    else:
        origin = _("dashed lines: recorded run on {device}", device=host.device)
    return [
        origin,
        *([] if host.device == host.cpu else [_("host: {cpu}", cpu=host.cpu)]),
        _("{threads} of {cores} cores · torch {torch}", threads=host.threads, cores=host.cores, torch=host.torch),
        _("{mode}, causal · {dtype} · batch 1, {heads}, head size {d}", **setup)
        if spec.causal
        else _("{mode} · {dtype} · batch 1, {heads}, head size {d}", **setup),
        host.date.partition("T")[0],
    ]
