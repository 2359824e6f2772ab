"""Sentences of the Timing page about peak memory, and the unit of memory on the page."""

from collections.abc import Sequence

from app.words.i18n import _, _n, escape_markdown, paragraph
from app.words.labels import in_words
from app.words.measured_times import Series
from attention_core.formatting import MIB, memory

ENTRY_BYTES = 2
"""Smallest size in bytes of a matrix entry, in any number format that can be chosen."""


def memory_unit(series: Sequence[Series]) -> tuple[int, str]:
    """Return the unit of all memory on the page: its bytes, and the name of such numbers.

    It is KiB if no measurement needed a MiB, and MiB otherwise.
    """
    if any(point.peak_bytes >= MIB for line in series for point in line.points):
        return MIB, _("peak memory (MiB)")
    return 2**10, _("peak memory (KiB)")


def memory_sentence(series: Sequence[Series]) -> str:
    """Return a paragraph about the variant that needs the least memory at the longest length measured for all.

    It is empty without softmax, or without any other variant. Series of softmax with a mask are ignored.
    """
    peaks = {line.name: {p.n: p.peak_bytes for p in line.points} for line in series if not line.masked}
    softmax = next((line.name for line in series if line.is_reference), None)
    lengths = set.intersection(*map(set, peaks.values())) if peaks else set()
    if softmax is None or len(peaks) < 2 or not lengths:
        return ""
    n = max(lengths)
    softmax_peak = peaks.pop(softmax)[n]
    other = min(peaks, key=lambda name: peaks[name][n])
    smallest = peaks[other][n]
    values = {"n": n, "name": escape_markdown(in_words(other)), "own": memory(softmax_peak), "other": memory(smallest)}
    spec = series[0].run.spec
    decodes = spec.mode == "decode"
    if softmax_peak <= smallest:
        least, most = (memory(choose(peak[n] for peak in peaks.values())) for choose in (min, max))
        # With a stored n × n matrix per head, softmax would need more memory than another variant.
        is_cause = not decodes and softmax_peak + spec.heads * n * n * ENTRY_BYTES > smallest
        text = paragraph(
            _(
                "At {n:,} tokens, softmax has the lowest peak memory ({own}), because torch's fused kernel never "
                "stores the n × n matrix.",
                **values,
            )
            if is_cause
            else _("At {n:,} tokens, softmax has the lowest peak memory ({own}).", **values),
            _n(
                "The other variant needs {amount}.",
                "The others need {amount}.",
                n=len(peaks),
                amount=least
                if least == most
                else _("{low} to {high}", low=least.removesuffix(most[most.index(" ") :]), high=most),
            ),
        )
    else:
        text = _(
            "At {n:,} tokens, {name} has the lowest peak memory: {other}, compared with {own} for softmax.", **values
        )
    return paragraph(text, _("Inputs such as the cache are not counted.") if decodes else "")
