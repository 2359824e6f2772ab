"""One source at many lengths: which lengths are worth measuring, and the record at each of them."""

from dataclasses import replace

from attention_core.experiments.task import Load
from attention_core.inputs import models
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, SyntheticSource, TextSource, first_tokens
from attention_core.limits import current

SHORTEST = 16
"""Tokens a sweep over length begins with, where there are enough."""
MANY = 512
"""Longest length from which on lengths double; below, there are two of them per doubling."""


def ladder(longest: int) -> tuple[int, ...]:
    """Lengths to measure, ascending: doubling from 16 to the longest, in finer steps where that is short."""
    step = 2.0 if longest >= MANY else 2.0**0.5
    rung: float = min(SHORTEST, max(4, longest // 4))
    rungs = []
    while rung < longest / step**0.5:
        rungs.append(round(rung))
        rung *= step
    return (*rungs, longest)


def reach(source: Source, record: QKV) -> int:
    """The most tokens a source can be measured at: a text's own length, or what the bounds allow.

    Args:
        source: the source.
        record: its record at its own length, which may have been cut for drawing.
    """
    limits = current()
    if isinstance(source, SyntheticSource):
        room = limits.synthetic_numbers // (source.spec.heads * source.spec.d)
        return min(limits.sweep_tokens, limits.synthetic_tokens, room)
    if isinstance(source, TextSource):
        positions = models.load(source.model).info.positions
        return min(record.total_tokens, positions, limits.sweep_tokens)
    return record.n


def at_length(source: Source, tokens: int, longest: int, load: Load) -> QKV:
    """A source's record at a number of tokens.

    A causal model's record of a beginning is the beginning of its record, so the model reads the text once; one that
    reads both ways reads each beginning as a text of its own.

    Args:
        source: the source.
        tokens: how many.
        longest: the most that will be asked of this source.
        load: turns a source into a record.

    Raises:
        LabError: if the source cannot become a record of this length.
    """
    if isinstance(source, SyntheticSource):
        return load(source, tokens)
    record = load(source, None)
    if isinstance(source, TextSource):
        if not record.causal:
            return load(source, tokens)
        if tokens > record.n:
            record = load(source, longest)
    return first_tokens(record, tokens)


def reseeded(source: Source, seeds: int) -> tuple[tuple[int | None, Source], ...]:
    """A synthetic source with several seeds, from its own onwards; any other source alone, without a seed."""
    if not isinstance(source, SyntheticSource):
        return ((None, source),)
    own = source.spec.seed
    return tuple((seed, SyntheticSource(replace(source.spec, seed=seed))) for seed in range(own, own + seeds))
