"""Sentences of the Timing page about times, and about full attention with a variant's mask."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import attention_core as ac
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import in_words, label
from app.words.measured_times import Series, crossings, machine_name
from attention_core.benchmarking.full_matrix_mask import MaskedFullAttention, attention_from_word
from attention_core.benchmarking.run_summary import Ratio
from attention_core.formatting import format_interpolated, number
from pages.timing.options import MASK_FORMS

MIN_GROWTH_RATIO = 4
"""If the work grows at least this many times as much as the time, starting operations dominates on short texts."""
NEAR_EQUAL = 1.1
"""Ratio of two numbers of multiply-adds below which they are called about as many."""
MAX_SAVING_RATIO = 0.9
"""Largest ratio of two times that counts as saved time."""
MIN_ROUNDS = 3
"""Fewest rounds from which a statement about a mask is made: the times of fewer rounds differ by chance."""
MIN_FIXED_SHARE = 0.5
"""Multiply-adds independent of the length explain slow short texts if they exceed this share of the total."""


def name(attention: ac.Attention, more: Iterable[str] = ()) -> str:
    """Return the name on screen of a timed variant or mask.

    Args:
        attention: the variant or mask.
        more: settings to name in addition to those that the name on screen contains.
    """
    text = label(attention, more)
    return _("{name}, as a mask", name=text) if isinstance(attention, MaskedFullAttention) else text


def fused_kernel(series: Sequence[Series]) -> str:
    """Return the sentence about what softmax's fused kernel means for times on a GPU; empty for a CPU."""
    if series[0].run.spec.device == "cpu":
        return ""
    return _(
        "**Softmax runs as one fused kernel**, and each variant as several operations that are not fused. A fused "
        "kernel for a variant could be faster than these times."
    )


def start_overhead(series: Sequence[Series]) -> str:
    """Return the sentence about the variant whose time on a GPU grows least with the length, and why.

    It is empty if the time grows about as much as the work, and for a CPU.
    """
    lines = [line for line in series if not line.masked and not line.is_reference and len(line.points) > 1]
    if not lines or series[0].run.spec.device == "cpu":
        return ""

    def times(line: Series) -> float:
        first, last = line.points[0], line.points[-1]
        return last.quartiles[1] / first.quartiles[1]

    smallest = min(lines, key=times)
    first, last = smallest.points[0], smallest.points[-1]
    if not first.multiply_adds or last.multiply_adds / first.multiply_adds < MIN_GROWTH_RATIO * times(smallest):
        return ""
    text = N_(
        "At {last:,} tokens, {name} needs {work} times as many multiply-adds as at {first:,} tokens, but only "
        "{times} times as much time. With short texts, the GPU mostly waits for the next of many small operations to "
        "start."
    )
    if times(smallest) < 1.05:  # Two digits would show a factor of 1 or less.
        text = N_(
            "At {last:,} tokens, {name} needs {work} times as many multiply-adds as at {first:,} tokens, but not "
            "clearly more time. With short texts, the GPU mostly waits for the next of many small operations to start."
        )
    return _(
        text,
        first=first.n,
        last=last.n,
        name=f"**{escape_markdown(in_words(smallest.name))}**",
        work=number(last.multiply_adds / first.multiply_adds),
        times=number(times(smallest), 2),
    )


def other_device_note(series: Sequence[Series], recorded: Sequence[Series], link: str = "") -> str:
    """Return the sentence about the lengths from which variants are faster than softmax on another device.

    Args:
        series: the timed variants on the page.
        recorded: the same variants in a recorded run on the other device; the sentence is empty without them.
        link: address at which the page shows that run; empty for no link.
    """
    same = [line for line in recorded if line.is_reference or line.word in {other.word for other in series}]
    if not series or len(same) < 2:
        return ""
    where = crossings(without_settings(same))  # The names omit settings, because the chart shows them.
    faster = [*where.get("below", []), *where.get("at", [])]
    slower = [name for kind, group in where.items() if kind not in ("below", "at") for _tokens, name, _text in group]
    device = machine_name(same[0], link)
    if not faster:
        return _n(
            "**On {device}**, {names} is not faster than softmax at its longest measured length.",
            "**On {device}**, {names} are not faster than softmax at their longest measured lengths.",
            n=len(slower),
            device=device,
            names=enumeration(slower),
        ) * bool(slower)
    variant_count = sum(not line.is_reference and not line.masked for line in series)
    if "at" in where and len(faster) + len(slower) == variant_count > 1 and len(slower) < len(faster):
        text = (
            N_("**On {device}**, every variant shown except {names} is faster than softmax from about {n} tokens on.")
            if slower
            else N_("**On {device}**, every variant shown is faster than softmax from about {n} tokens on.")
        )
        return _(text, device=device, names=enumeration(slower), n=format_interpolated(where["at"][-1][0]))
    return paragraph(
        _(
            "Faster than softmax **on {device}**: {names}.",
            device=device,
            names=enumeration(text for _tokens, _name, text in faster),
        ),
        _n(
            "{names} is not faster there at its longest measured length.",
            "{names} are not faster there at their longest measured lengths.",
            n=len(slower),
            names=enumeration(slower),
        )
        if slower
        else "",
    )


def without_settings(series: Sequence[Series]) -> list[Series]:
    """Return the series without masks, with settings left out of their names unless two names would then be equal."""
    unmasked = [line for line in series if not line.masked]
    names = [line.name.partition(" · ")[0] for line in unmasked]
    if len(set(names)) < len(names):
        return unmasked
    return [replace(line, name=name) for line, name in zip(unmasked, names, strict=True)]


def speedup(series: Sequence[Series]) -> tuple[int, str, str] | None:
    """Return the longest length of a run, and how many times as fast as softmax its variants are there.

    Returns:
        The length, the smallest and the largest factor (both as text); None unless all variants are faster than
            softmax.
    """
    last = [line.ratios[-1] for line in series if not line.masked and not line.is_reference and line.ratios]
    if len({ratio.n for ratio in last}) != 1 or any(ratio.high >= 1 for ratio in last):
        return None
    lowest, highest = (number(1 / extreme(ratio.middle for ratio in last)) for extreme in (max, min))
    return last[0].n, lowest, highest


def speedup_sentence(series: Sequence[Series]) -> str:
    """Return the sentence about the ``speedup``; empty without one."""
    if (factors := speedup(series)) is None:
        return ""
    n, lowest, highest = factors
    others = [line for line in series if not line.masked and not line.is_reference and line.ratios]
    names = [escape_markdown(in_words(line.name)) for line in others]
    references = [line for line in series if line.is_reference and not line.masked]
    work, *others_work = (
        next((point.multiply_adds for point in line.points if point.n == n), 0) for line in (*references[:1], *others)
    )
    shares = [work / (each or math.inf) for each in others_work]
    if min(shares) > NEAR_EQUAL / min(line.ratios[-1].middle for line in others):
        text = (
            N_(
                "At {n:,} tokens, softmax needs {work} times as many multiply-adds as {name}, but only {times} times "
                "as much time in the median round."
            )
            if len(names) == 1
            else N_(
                "At {n:,} tokens, softmax needs {work} times as many multiply-adds as the variants shown, but only "
                "{times} times as much time in the median round."
            )
        )
        work_range = _range(number(min(shares)), number(max(shares)))
        return _(text, n=n, name=names[0], work=work_range, times=_range(lowest, highest))
    if len(names) == 1:
        return _(
            "At {n:,} tokens, {name} is {most} times as fast as softmax in the median round.",
            n=n,
            name=names[0],
            most=highest,
        )
    if lowest == highest:
        return _(
            "At {n:,} tokens, the variants shown are {most} times as fast as softmax in the median round.",
            n=n,
            most=highest,
        )
    return _(
        "At {n:,} tokens, the variants shown are {least} to {most} times as fast as softmax in the median round.",
        n=n,
        least=lowest,
        most=highest,
    )


def _range(low: str, high: str) -> str:
    return low if low == high else _("{low} to {high}", low=low, high=high)


def slow_start_cause(series: Sequence[Series]) -> str:
    """Return the sentence about the slowest variant at the shortest length, if most of its work has a constant size.

    Otherwise, return "". The constant number of multiply-adds is estimated from the work at two lengths. The text
    calls it the cause only if the ratio of the work to softmax's explains most of the ratio of the times, on a
    logarithmic scale.
    """
    lines = [line for line in series if not line.masked and line.points]
    softmax = next((line for line in lines if line.is_reference), None)
    if series[0].run.spec.device != "cpu":  # On a GPU, launching kernels takes most of the time of short texts.
        return ""
    if softmax is None or len({line.points[0].n for line in lines}) != 1:
        return ""
    slowest = max(lines, key=lambda line: line.points[0].quartiles[1])
    largest_work = max(lines, key=lambda line: line.points[0].multiply_adds)
    first, *later = slowest.points
    double = next((point for point in later if point.n == 2 * first.n), None)
    if slowest.is_reference or slowest is not largest_work or double is None or not first.multiply_adds:
        return ""
    share = (2 * first.multiply_adds - double.multiply_adds) / first.multiply_adds
    if share <= MIN_FIXED_SHARE:
        return ""
    attention = attention_from_word(slowest.word)
    title = f"**{_(attention.title)}**"
    work = first.multiply_adds / softmax.points[0].multiply_adds
    times = first.quartiles[1] / softmax.points[0].quartiles[1]
    if work**2 < times:
        text = (
            N_("At {n:,} tokens, {title} takes {times} times as long as softmax, with about as many multiply-adds.")
            if work < NEAR_EQUAL
            else N_(
                "At {n:,} tokens, {title} takes {times} times as long as softmax, with {work} times as many "
                "multiply-adds."
            )
        )
        slow = _(text, n=first.n, title=title, times=number(times), work=number(work))
        if series[0].run.spec.mode != "decode":
            return slow
        # A step of decoding computes one token. Its multiply-adds take a small part of the step's time, so the number
        # of operations explains the difference.
        reason = _(
            "Softmax runs as one fused kernel, and {title} as several operations that each take time to start.",
            title=_(attention.title),
        )
        return paragraph(slow, reason)
    text = (
        N_(
            "At {n:,} tokens, {title} is the slowest, partly because it spends most of its multiply-adds on steps that "
            "do not shrink with the text, such as inverting a matrix."
        )
        if getattr(attention.params, "inverse", "") == "iterative"
        else N_(
            "At {n:,} tokens, {title} is the slowest, partly because it spends most of its multiply-adds on steps that "
            "do not shrink with the text."
        )
    )
    return _(text, n=first.n, title=title)


def mask_effects(series: Sequence[Series]) -> str:
    """Return the sentence that compares full attention with a mask and the variant's own algorithm.

    It is empty if no mask was timed, or in fewer than ``MIN_ROUNDS`` rounds.
    """
    for line in series:
        own_series = next((other for other in series if line.masked and other.word == line.masked.plain.word), None)
        both = {r.n: r for r in own_series.ratios} if own_series else {}
        common = [r for r in line.ratios if r.n in both]
        if not (line.masked and own_series and common):
            continue
        if next(len(point.ms) for point in line.points if point.n == common[-1].n) >= MIN_ROUNDS:
            return mask_effect(own_series.name, _(MASK_FORMS[line.masked.form]), common[-1], both[common[-1].n])
    return ""


def mask_effect(name: str, form: str, masked: Ratio, variant_ratio: Ratio) -> str:
    """Return the sentence that compares full attention with a mask and the algorithm that skips the masked pairs.

    Args:
        name: name of the variant.
        form: how the mask is applied, as text from ``MASK_FORMS``.
        masked: time with the mask, divided by softmax's time.
        variant_ratio: time of the variant's own algorithm, divided by softmax's time, at the same length.
    """
    if masked.high < MAX_SAVING_RATIO:
        effect = _("**A mask alone saves time.**")
    elif masked.low < 1:
        effect = _("**A mask alone has no clear effect on the time.**")
    else:
        effect = _("**A mask alone saves no time.**")
    text = _(
        "At {n:,} tokens, full attention with the mask of {name} ({form}) takes {masked:.2g} times softmax's time. The "
        "variant's own algorithm, which skips hidden pairs, takes {own:.2g} times softmax's time.",
        name=escape_markdown(in_words(name)),
        form=form,
        masked=masked.middle,
        n=masked.n,
        own=variant_ratio.middle,
    )
    return paragraph(effect, text)
