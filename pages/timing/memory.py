"""Sentences of the Timing page about peak memory, and the unit of memory on the page."""

from collections.abc import Sequence

from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.labels import in_words
from app.words.measured_times import Series
from attention_core.benchmarking.full_matrix_mask import attention_from_word
from attention_core.benchmarking.timing import DTYPES
from attention_core.experiments.generation import memory_bytes
from attention_core.formatting import MIB, memory

ENTRY_BYTES = 2
"""Smallest size in bytes of a matrix entry, in any number format that can be chosen."""
NEAR_OUTPUT = 1.1
"""Ratio of the peak memory to the size of the output up to which hardly more than the output is stored."""


def memory_unit(series: Sequence[Series]) -> tuple[int, str]:
    """Return the unit of all memory on the page: its bytes, and the name of such numbers.

    It is KiB if no measurement needed a MiB, and MiB otherwise.
    """
    decodes = series[0].run.spec.mode == "decode"
    if any(size >= MIB for line in series for size in call_bytes(line).values()):
        return MIB, _("memory with cache or state (MiB)") if decodes else _("peak memory (MiB)")
    return 2**10, _("memory with cache or state (KiB)") if decodes else _("peak memory (KiB)")


def call_bytes(line: Series) -> dict[int, int]:
    """Return the peak memory of one call in bytes, by length; for a decode step, with the cache or state it reads."""
    constant, per_token = _kept_bytes(line) if line.run.spec.mode == "decode" else (0, 0)
    return {point.n: point.peak_bytes + constant + point.n * per_token for point in line.points}


def memory_sentence(series: Sequence[Series]) -> str:
    """Return a paragraph about the memory that the variants need at the longest length measured for all.

    It is empty without softmax, or without any other variant. Series of softmax with a mask are ignored.
    """
    shown = [line for line in series if not line.masked]
    softmax = next((line for line in shown if line.is_reference), None)
    others = [line for line in shown if line is not softmax]
    lengths = set.intersection(*({point.n for point in line.points} for line in shown)) if shown else set()
    if softmax is None or not others or not lengths:
        return ""
    n = max(lengths)
    decodes = softmax.run.spec.mode == "decode"
    return _decoding(softmax, others, n) if decodes else _whole_text(softmax, others, n)


def _peak(line: Series, n: int) -> int:
    return next(point.peak_bytes for point in line.points if point.n == n)


def _whole_text(softmax: Series, others: Sequence[Series], n: int) -> str:
    """Return the paragraph about the variant that needs the least memory for n tokens."""
    spec, own = softmax.run.spec, _peak(softmax, n)
    least = min(others, key=lambda line: _peak(line, n))
    smallest = _peak(least, n)
    values = {"n": n, "name": escape_markdown(in_words(least.name)), "own": memory(own), "other": memory(smallest)}
    if smallest < own:
        return _(
            "At {n:,} tokens, {name} has the lowest peak memory: {other}, compared with {own} for softmax.", **values
        )
    text = N_("At {n:,} tokens, softmax has the lowest peak memory ({own}).")
    output = spec.output_bytes(n)
    if spec.mode == "forward" and own <= NEAR_OUTPUT * output:
        text = N_(
            "At {n:,} tokens, softmax has the lowest peak memory ({own}), because torch's fused kernel stores hardly "
            "more than the output ({output})."
        )
    elif own + spec.heads * n * n * ENTRY_BYTES > smallest:
        # With a stored n × n matrix per head, softmax would need more memory than another variant.
        text = N_(
            "At {n:,} tokens, softmax has the lowest peak memory ({own}). Its fused kernel stores no n × n matrix, and "
            "variants store the results of several operations."
        )
    needed = _n(
        "The other variant needs {amount}.",
        "The others need {amount}.",
        n=len(others),
        amount=_amount([_peak(line, n) for line in others]),
    )
    return paragraph(_(text, output=memory(output), **values), needed)


def _decoding(softmax: Series, others: Sequence[Series], n: int) -> str:
    """Return the paragraph about the memory kept after n tokens, and the memory that one more step allocates."""
    states = [_kept_bytes(line)[0] for line in others]
    cache = n * _kept_bytes(softmax)[1]
    name = escape_markdown(in_words(others[0].name))
    kept = (
        _("{name} keeps a state of {state}, however long the text is.", name=name, state=_amount(states))
        if len(others) == 1
        else _("The other variants keep states of {states}, however long the text is.", states=_amount(states))
    )
    step = (
        N_("One more step allocates {own} with softmax, and {other} with {name}, including its new state.")
        if len(others) == 1
        else N_("One more step allocates {own} with softmax, and {other} with the others, including their new states.")
    )
    return paragraph(
        _("After {n:,} tokens, softmax keeps a cache of {cache}.", n=n, cache=memory(cache)),
        kept,
        _(step, own=memory(_peak(softmax, n)), other=_amount([_peak(line, n) for line in others]), name=name),
    )


def _kept_bytes(line: Series) -> tuple[int, int]:
    """Return the bytes kept between two decode steps: a constant part, and a part per past token."""
    spec = line.run.spec
    size = spec.head_size
    return memory_bytes(attention_from_word(line.word), spec.heads, size, size, DTYPES[spec.dtype])


def _amount(sizes: Sequence[int]) -> str:
    """Return the range of some sizes in bytes as text; the unit of equal units is written once."""
    low, high = memory(min(sizes)), memory(max(sizes))
    if low == high:
        return low
    return _("{low} to {high}", low=low.removesuffix(high[high.index(" ") :]), high=high)
