"""The only caches, and what is looked at through them.

A result is keyed on frozen specs and words, never on arrays. Cached matrices are numpy; records and models are shared
between visitors and never changed. All caches together hold ``cached_bytes``, of which each has its parts. Looks at
long inputs pass one gate, so that light pages stay quick; what takes longer is a task (``app/jobs/dispatch.py``).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, wraps
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import streamlit as st

import attention_core as ac
import attention_core.analysis.low_rank.cur as _cur
import attention_core.analysis.low_rank.performer_bias as _performer_bias
import attention_core.analysis.masks.pattern as _pattern
import attention_core.analysis.masks.stack as _stack
import attention_core.analysis.matrix.budgets as _budgets
import attention_core.analysis.matrix.future as _future
import attention_core.analysis.matrix.head_scores as _head_scores
import attention_core.analysis.matrix.inside as _inside
import attention_core.analysis.matrix.special_case as _special_case
import attention_core.analysis.matrix.telling_row as _telling_row
import attention_core.analysis.matrix.thresholds as _thresholds
import attention_core.analysis.state.delta_state as _delta_state
import attention_core.analysis.state.gating as _gating
import attention_core.analysis.state.gau as _gau
import attention_core.analysis.state.recurrent_state as _recurrent_state
import attention_core.analysis.state.token_weight as _token_weight
from app.jobs.fair_lock import FairLock
from app.jobs.singleton import once
from app.matrix_board import shades
from attention_core.analysis.matrix.compare import Compared, compare
from attention_core.analysis.matrix.compare import ranks as ranks_of
from attention_core.analysis.matrix.miniatures import miniatures
from attention_core.inputs.positions import OWN
from attention_core.inputs.source import Source
from attention_core.limits import current
from attention_core.metrics.passport import Ranks
from attention_core.runtime import execution
from attention_core.runtime.cache import ByteLRUCache, Frozen, digest


@dataclass(frozen=True, kw_only=True)
class View:
    """What every panel of a comparison shares.

    Attributes:
        source: what the queries, keys and values come from.
        head: the head looked at, None for the average.
        causal: whether the future is hidden.
        special: whether special tokens are shown.
    """

    source: Source
    head: int | None
    causal: bool
    special: bool


class Uploads:
    """The files of all visitors, by their digests: a session that held its own would hold it long after its visitor.

    Args:
        most_bytes: of all of them together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._lock, self._files = most_bytes, threading.Lock(), OrderedDict[str, bytes]()

    def keep(self, digest: str, data: bytes) -> None:
        """Keep a file; those that were asked for longest ago make room."""
        with self._lock:
            self._files[digest] = data
            self._files.move_to_end(digest)
            while sum(map(len, self._files.values())) > self._most:
                self._files.popitem(last=False)

    def get(self, digest: str) -> bytes | None:
        """A file, None where it had to make room."""
        with self._lock:
            if digest in self._files:
                self._files.move_to_end(digest)
            return self._files.get(digest)


@once
def uploads() -> Uploads:
    """The files of this process's visitors."""
    return Uploads(current().uploads_bytes)


@once
def gate() -> FairLock:
    """The one queue of this process for heavy work."""
    return FairLock(current().heavy_jobs)


@once
def drawing() -> FairLock:
    """The queue of this process for running pages.

    Runs that share the interpreter take turns at every operation of torch, and all end late: one after the other, all
    but the last end sooner. Who computes or waits for long steps out meanwhile.
    """
    return FairLock(current().drawn_at_once)


# Everything a frozen spec says stands in its repr, but not an upload's bytes: those are hashed once, when they arrive.
_KEYS: dict[type[Any], Callable[[Any], Hashable]] = {ac.Attention: attrgetter("word")}
_KEYS |= dict.fromkeys((*Source.__subclasses__(), View, _gating.Gate), digest)
_KEYS[tuple] = lambda parts: tuple(map(_key, parts))


def _key(part: Any) -> Hashable:  # noqa: ANN401 - any frozen spec, word or number
    """What tells an argument apart from all others; 0, 0.0 and False are three."""
    return type(part), _KEYS.get(type(part), _itself)(part)


def _itself(part: Hashable) -> Hashable:
    return part


LIGHT = 128
"""Tokens up to which a look takes milliseconds, and waits for nobody: behind long inputs it would wait for seconds."""
PARTS = 58
"""Of which each cache has some; a single result that is larger than its cache's stands there alone."""


def _turn(tokens: int) -> AbstractContextManager[None]:
    # Since the page asked to be drawn: who looks at many things waits behind others once, and not for each of them.
    return gate().turn(asked=drawing().asked) if tokens > LIGHT else nullcontext()


def _aside(tokens: int) -> AbstractContextManager[None]:
    # Around a cache, never inside: who is drawn may wait for what another computes.
    return drawing().away() if tokens > LIGHT else nullcontext()


_waited_for = threading.local()


@contextmanager
def spinner(words: str) -> Iterator[None]:
    """Say these words on the page from when something is asked for that is not kept: to be ready costs a run a thread.

    Args:
        words: what is computed.
    """
    with ExitStack() as shown:
        around = getattr(_waited_for, "tell", None)
        _waited_for.tell = lambda: shown.enter_context(st.spinner(words, show_time=True))
        try:
            yield
        finally:
            _waited_for.tell = around


def begin() -> None:
    """What is asked for is not kept: whoever has words for that says them now."""
    tell = getattr(_waited_for, "tell", None)
    if tell is not None:
        _waited_for.tell = None
        tell()


def _bytes(parts: int) -> int:
    return current().cached_bytes * parts // PARTS


P = ParamSpec("P")
T = TypeVar("T")


def record(source: Source, tokens: int | None = None) -> ac.inputs.QKV:
    """The queries, keys and values a source stands for, at its own length or another.

    Raises:
        LabError: if the source cannot become a record.
    """
    known = records().known(source, tokens)
    if known is not None:
        return known
    begin()
    with drawing().away():
        if tokens is None and source.layer_count > 1:
            return records().kept.get((digest(source), tokens), lambda: every_layer(source)[source.layer])
        return records().load(source, tokens)


def every_layer(source: Source) -> Sequence[ac.inputs.QKV]:
    """A source's record at each layer: a model reads a text once for all its layers, which the sidebar shows anyway.

    Raises:
        LabError: if the source cannot become a record.
    """
    if source.layer_count == 1:
        return (record(source),)
    own = replace(source.at_layer(0), positions=OWN)
    return source.each(_long(_readings, _key(own), lambda: own.layers(record)))


@once
def records() -> execution.Records:
    """What this process's visitors look at."""
    return execution.Records(_bytes(3))


_caches: list[ByteLRUCache[Any]] = []
"""All but the records'."""


def cache(entries: int = 1, parts: int = 1) -> ByteLRUCache[Any]:
    """A cache of results that visitors share.

    Args:
        entries: results kept, in multiples of ``cached_results``.
        parts: of the bytes of all caches.
    """
    made: ByteLRUCache[Any] = ByteLRUCache(_bytes(parts), attrgetter("nbytes"), most=entries * current().cached_results)
    _caches.append(made)
    return made


def _look(
    of: Callable[Concatenate[ac.inputs.QKV, P], T], entries: int = 1, parts: int = 1
) -> Callable[Concatenate[Source, P], T]:
    """A look that is given a source in place of its record, cached; else its arguments and its errors are its own.

    Args:
        of: one of ``attention_core.analysis``.
        entries: as of ``cache``.
        parts: likewise.
    """
    kept: ByteLRUCache[Frozen[T]] = cache(entries, parts)

    @wraps(of)
    def look(source: Source, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = _key((source.settled, args, *kwargs.items()))
        if (known := kept.known(key)) is not None:
            return known.value

        def find() -> Frozen[T]:
            with _turn(qkv.n):
                return Frozen(of(qkv, *args, **kwargs))

        begin()
        qkv = record(source)
        with _aside(qkv.n):
            return kept.get(key, find).value

    return look


_compared = _look(compare, 8, 6)
pattern = _look(_pattern.pattern, 8, 2)
hashed = _look(_pattern.hashed)
inside = _look(_inside.look, 8, 3)
gau = _look(_gau.look)
performer_means = _look(_performer_bias.means, 2)
future_share = _look(_future.future_share, 8)
columns_and_rows = _look(_cur.look)
at_every_budget = _look(_budgets.at_every_budget, 4)
grown = _look(_recurrent_state.grow, 1, 3)
causal_weights = _look(_token_weight.causal_weights, 2)
gated = _look(_gating.gated)
delta_growth = _look(_delta_state.growth)
apart = _look(_special_case.apart, 4)
thresholds = _look(_thresholds.thresholds)
delta_written = _look(_delta_state.written)


def matrix(view: View, attention: ac.Attention) -> Compared:
    """One variant's matrix on a view, and its numbers; errors as of ``compare``."""
    view = _settled(view)
    return _compared(view.source, attention, head=view.head, causal=view.causal, special=view.special)


def _settled(view: View) -> View:
    """What is seen on a view, asked for in one way alone."""
    return replace(view, source=view.source.settled, special=_shown(view.source, view.special))


def _shown(source: Source, special: bool) -> bool:
    """Whether special tokens are shown; where there are none they are."""
    return special or not any(record(source).special)


def ranks(view: View, attention: ac.Attention) -> Ranks:
    """The ranks of that matrix, which take longer than its other numbers."""
    found, key = matrix(view, attention), _key((_settled(view), attention))

    def find() -> Frozen[Ranks]:
        with _turn(len(found.weights)):
            return Frozen(ranks_of(found))

    if (known := _ranks.known(key)) is not None:
        return known.value
    begin()
    with _aside(len(found.weights)):
        return _ranks.get(key, find).value


def telling_row(view: View, attention: ac.Attention) -> int | None:
    """The query that tells the most in that matrix; None where no word can look at another."""
    weights, qkv = matrix(view, attention).weights, record(view.source)
    find = partial(_telling_row.of_record, weights, qkv, special=view.special)
    return _telling.get(_key((_settled(view), attention)), lambda: Frozen(find())).value


_telling: ByteLRUCache[Frozen[int | None]] = cache(8)
_ranks: ByteLRUCache[Frozen[Ranks]] = cache(8)
READINGS = 16
"""Parts for what models read, which takes up to seconds: all texts that a class starts from, and some of its own."""
_readings: ByteLRUCache[Any] = cache(1, READINGS)
_reaches: ByteLRUCache[Frozen[_stack.Reach]] = cache(8)
_miniatures: ByteLRUCache[Frozen[np.ndarray]] = cache(8)
_scores: ByteLRUCache[Frozen[tuple[_head_scores.HeadScores, ...]]] = cache(4)


def reach(view: View, layers: tuple[ac.Attention, ...], depth: int) -> _stack.Reach:
    """How far a stack of variants reaches, repeated until it is so deep; errors as of ``matrix``."""

    def find() -> Frozen[_stack.Reach]:
        allowed = [pattern(view.source, layer, head=view.head, causal=view.causal).allowed for layer in layers]
        with _turn(max(map(len, allowed), default=0)):
            return Frozen(_stack.reach(allowed, depth, causal=view.causal))

    return _long(_reaches, _key((view, layers, depth)), find).value


def head_miniatures(source: Source, causal: bool, special: bool = True, size: int = 24) -> np.ndarray:
    """Softmax in every layer and head of a source, as shades ``[L, H, s, s]``; one layer where there is no model."""

    def find() -> Frozen[np.ndarray]:
        layers = every_layer(source)
        with _turn(layers[0].n):
            return Frozen(shades(miniatures(layers, causal=causal, special=special, size=size).numpy()))

    source, special = source.settled, _shown(source, special)
    return _long(_miniatures, _key((source, causal, special, size)), find).value


def head_scores(source: Source, causal: bool, special: bool) -> tuple[_head_scores.HeadScores, ...]:
    """What every layer and head of a source looks for, in numbers; as of ``head_miniatures``."""

    def find() -> Frozen[tuple[_head_scores.HeadScores, ...]]:
        layers = every_layer(source)
        with _turn(layers[0].n):
            return Frozen(_head_scores.head_scores(layers, causal=causal, special=special))

    source, special = source.settled, _shown(source, special)
    return _long(_scores, _key((source, causal, special)), find).value


def _long(kept: ByteLRUCache[T], key: Hashable, find: Callable[[], T]) -> T:
    """A result that takes long to find: others are drawn until it is there."""
    if (known := kept.known(key)) is not None:
        return known
    begin()
    with drawing().away():
        return kept.get(key, find)
