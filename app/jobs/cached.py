"""The caches that all visitors share, and the cached analysis functions that pages call.

Cache keys are settings, never arrays. Cached results and models are shared between visitors and are never modified. All
caches together hold at most ``cached_bytes`` bytes, and each cache may use a fixed share of them. Analyses of long
inputs wait for one lock, so that pages with short inputs stay fast. Work that takes longer runs as a task (see
``app/jobs/dispatch.py``).
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, wraps
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import streamlit as st

import attention_core as ac
import attention_core.analysis.denoised_image as _denoised_image
import attention_core.analysis.masks.pattern as _pattern
import attention_core.analysis.masks.stack as _stack
import attention_core.analysis.matrix.budgets as _budgets
import attention_core.analysis.matrix.future as _future
import attention_core.analysis.matrix.head_scores as _head_scores
import attention_core.analysis.matrix.informative_query as _informative_query
import attention_core.analysis.matrix.inside as _inside
import attention_core.analysis.matrix.thresholds as _thresholds
import attention_core.analysis.state.delta_state as _delta_state
import attention_core.analysis.state.recurrent_state as _recurrent_state
import attention_core.analysis.state.token_weight as _token_weight
from app.jobs.fair_lock import FairLock
from app.jobs.singleton import cached_singleton
from app.matrix_board import shades
from attention_core.analysis.matrix.compare import MatrixComparison, compare
from attention_core.analysis.matrix.compare import ranks as ranks_of
from attention_core.analysis.matrix.miniatures import miniatures
from attention_core.inputs.image_source import ImageSource
from attention_core.inputs.positions import OWN
from attention_core.inputs.source import Source
from attention_core.limits import current
from attention_core.metrics.passport import Ranks
from attention_core.runtime import execution
from attention_core.runtime.cache import ByteLRUCache, Frozen, digest


@dataclass(frozen=True, kw_only=True)
class MatrixView:
    """The settings that all panels of a comparison share.

    Attributes:
        source: the source of the queries, keys and values.
        head: the head shown; None for the average over heads.
        causal: whether future keys are masked.
        special: whether special tokens are shown.
    """

    source: Source
    head: int | None
    causal: bool
    special: bool


@cached_singleton
def uploads() -> ByteLRUCache[bytes]:
    """Return the cache of all visitors' uploaded files, by digest.

    They are not in the session state, because Streamlit keeps that state after the visit.
    """
    return ByteLRUCache(current().uploads_bytes, len)


@cached_singleton
def compute_lock() -> FairLock:
    """Return the lock that bounds how many heavy computations this process runs at a time."""
    return FairLock(current().heavy_jobs)


@cached_singleton
def page_lock() -> FairLock:
    """Return the lock that bounds how many page scripts this process runs at a time.

    Scripts that share the interpreter alternate at every torch operation, so all of them finish late. When they run one
    after another, all but the last finish sooner. A script gives up its place while it computes or waits for long.
    """
    return FairLock(current().concurrent_pages)


# Sources and views are hashed by their repr, which contains all their fields. For an uploaded file, it contains
# the digest of the file's bytes instead of the bytes. The digest is computed once, when the file arrives.
_KEY_FUNCTIONS: dict[type[Any], Callable[[Any], Hashable]] = {ac.Attention: attrgetter("word")}
_KEY_FUNCTIONS |= dict.fromkeys((*Source.__subclasses__(), MatrixView), digest)
_KEY_FUNCTIONS[tuple] = lambda parts: tuple(map(_key, parts))


def _key(argument: Any) -> Hashable:  # noqa: ANN401 - any frozen spec, word or number
    """Return a cache key that is unique to an argument. The type is part of it, since 0, 0.0 and False are equal."""
    key_function = _KEY_FUNCTIONS.get(type(argument))
    return type(argument), key_function(argument) if key_function else argument


SHORT_INPUT_TOKENS = 128
"""Inputs up to this many tokens skip the lock: they take milliseconds, and would wait seconds behind long inputs."""
CACHE_PARTS = 66
"""Number of equal parts into which ``cached_bytes`` is divided.

A result larger than the size of its cache replaces all other results in that cache.
"""


def _compute_turn(tokens: int) -> AbstractContextManager[None]:
    # The lock serves the earliest request first. All analyses of a page count as requested when the page was requested.
    # A page with many analyses is therefore served before pages that were requested later.
    return (
        compute_lock().acquired(requested_at=page_lock().requested_at) if tokens > SHORT_INPUT_TOKENS else nullcontext()
    )


def _release_page(tokens: int) -> AbstractContextManager[None]:
    # Callers use this context manager around a cache lookup, never inside the cached function. At the end of the block,
    # the thread waits for the page lock again. If that happened inside the cached function, its result would not be
    # stored yet. Another page that holds the page lock could be waiting for this result, which would be a deadlock.
    return page_lock().released() if tokens > SHORT_INPUT_TOKENS else nullcontext()


_spinner_state = threading.local()


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show a spinner once the code in the ``with`` block needs a result that is not cached.

    A spinner shown from the start would need a thread even if all results were cached.
    """
    with ExitStack() as stack:
        outer_show = getattr(_spinner_state, "show", None)
        _spinner_state.show = lambda: stack.enter_context(st.spinner(text, show_time=True))
        try:
            yield
        finally:
            _spinner_state.show = outer_show


def show_spinner() -> None:
    """Show the spinner of the surrounding ``spinner`` block, if any.

    It is called before a missing result is computed.
    """
    show = getattr(_spinner_state, "show", None)
    if show is not None:
        _spinner_state.show = None
        show()


def _part_bytes(parts: int) -> int:
    return current().cached_bytes * parts // CACHE_PARTS


P = ParamSpec("P")
T = TypeVar("T")


def record(source: Source, tokens: int | None = None) -> ac.inputs.QKV:
    """Return the record of a source (its queries, keys and values), with ``tokens`` tokens or at its own length.

    Raises:
        LabError: if the source cannot be read.
    """
    qkv = records().known(source, tokens)
    if qkv is not None:
        return qkv
    show_spinner()
    with page_lock().released():
        if tokens is None and source.layer_count > 1:
            return records().cache.get((digest(source), tokens), lambda: every_layer(source)[source.layer])
        return records().load(source, tokens)


def every_layer(source: Source) -> Sequence[ac.inputs.QKV]:
    """Return one record per layer of a source (see ``record``); a model reads a text once for all its layers.

    Raises:
        LabError: if the source cannot be read.
    """
    if source.layer_count == 1:
        return (record(source),)
    model_source = replace(source.at_layer(0), positions=OWN)
    return source.apply_positions(
        _get_releasing_page(_model_records, _key(model_source), lambda: model_source.layers(record))
    )


@cached_singleton
def records() -> execution.Records:
    """Return this process's cache of records: queries, keys and values of inputs, such as a text read by a model."""
    return execution.Records(_part_bytes(3))


_caches: list[ByteLRUCache[Any]] = []
"""All caches except the records' cache."""


def cache(entries: int = 1, parts: int = 1) -> ByteLRUCache[Any]:
    """Return a new cache of results that visitors share.

    Args:
        entries: the largest number of results, in multiples of the limit ``cache_entries``.
        parts: the size of the cache, in multiples of ``cached_bytes / CACHE_PARTS``.
    """
    results: ByteLRUCache[Any] = ByteLRUCache(
        _part_bytes(parts), attrgetter("nbytes"), most=entries * current().cache_entries
    )
    _caches.append(results)
    return results


def _cached_analysis(
    analyse: Callable[Concatenate[ac.inputs.QKV, P], T], entries: int = 1, parts: int = 1
) -> Callable[Concatenate[Source, P], T]:
    """Return a cached version of an analysis function that takes a source instead of the source's record.

    Args:
        analyse: a function of ``attention_core.analysis``, which defines the other arguments and the errors.
        entries: the largest number of cached results, as in ``cache``.
        parts: the size of the cache, as in ``cache``.
    """
    results: ByteLRUCache[Frozen[T]] = cache(entries, parts)

    @wraps(analyse)
    def cached_analyse(source: Source, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = _key((source.canonical, args, *kwargs.items()))
        if (result := results.known(key)) is not None:
            return result.value
        qkv = record(source)
        return _get_or_compute(results, key, lambda: analyse(qkv, *args, **kwargs), qkv.n)

    return cached_analyse


def _get_or_compute(results: ByteLRUCache[Frozen[T]], key: Hashable, compute: Callable[[], T], tokens: int) -> T:
    """Return a cached result, or wait for the compute lock and compute the result.

    If the input has more than ``SHORT_INPUT_TOKENS`` tokens, other pages are drawn during the computation.
    """

    def compute_in_turn() -> Frozen[T]:
        with _compute_turn(tokens):
            return Frozen(compute())

    if (result := results.known(key)) is not None:
        return result.value
    show_spinner()
    with _release_page(tokens):
        return results.get(key, compute_in_turn).value


_compare = _cached_analysis(compare, 8, 6)
pattern = _cached_analysis(_pattern.pattern, 8, 2)
hash_order = _cached_analysis(_pattern.hash_order)
inside = _cached_analysis(_inside.intermediate_results, 8, 3)
errors_without_inverse = _cached_analysis(_inside.errors_without_inverse, 8)
future_share = _cached_analysis(_future.future_share, 8)
compare_budgets = _cached_analysis(_budgets.compare_budgets, 4)
state_history = _cached_analysis(_recurrent_state.state_history, 1, 3)
causal_weights = _cached_analysis(_token_weight.causal_weights, 2)
growth_by_strength = _cached_analysis(_delta_state.growth_by_strength)
thresholds = _cached_analysis(_thresholds.thresholds)
growth_by_token = _cached_analysis(_delta_state.growth_by_token)


def matrix(view: MatrixView, attention: ac.Attention) -> MatrixComparison:
    """Return one variant's matrix for a view, with its metrics.

    Errors are those of ``attention_core``'s ``compare``.
    """
    view = _canonical(view)
    return _compare(view.source, attention, head=view.head, causal=view.causal, special=view.special)


def _canonical(view: MatrixView) -> MatrixView:
    """Return the same view for all views that show the same numbers, so that they share a cache key."""
    return replace(view, source=view.source.canonical, special=_shows_all_tokens(view.source, view.special))


def _shows_all_tokens(source: Source, special: bool) -> bool:
    """Return whether all tokens are shown: special tokens are not hidden, or the source has none."""
    return special or not any(record(source).special)


def ranks(view: MatrixView, attention: ac.Attention) -> Ranks:
    """Return the ranks of one variant's matrix for a view, which take longer to compute than its other metrics."""
    comparison, key = matrix(view, attention), _key((_canonical(view), attention))
    return _get_or_compute(_ranks, key, partial(ranks_of, comparison), len(comparison.weights))


def informative_query(view: MatrixView, attention: ac.Attention) -> int | None:
    """Return the query with the highest weight on one other word, to be shown first; None if there is no such word."""
    weights, qkv = matrix(view, attention).weights, record(view.source)
    compute = partial(_informative_query.informative_query_of_record, weights, qkv, special=view.special)
    return _informative_queries.get(_key((_canonical(view), attention)), lambda: Frozen(compute())).value


_informative_queries: ByteLRUCache[Frozen[int | None]] = cache(8)
_ranks: ByteLRUCache[Frozen[Ranks]] = cache(8)
MODEL_RECORD_PARTS = 18
"""Size of the cache for models' records, in ``CACHE_PARTS``: room for the preset texts and some more.

A model can take seconds to compute a record.
"""
_model_records: ByteLRUCache[Any] = cache(1, MODEL_RECORD_PARTS)
_reaches: ByteLRUCache[Frozen[_stack.Reach]] = cache(8)
_miniatures: ByteLRUCache[Frozen[np.ndarray]] = cache(8)
_scores: ByteLRUCache[Frozen[tuple[_head_scores.HeadScores, ...]]] = cache(4)


def reach(view: MatrixView, layers: tuple[ac.Attention, ...], depth: int) -> _stack.Reach:
    """Return how far information travels through ``depth`` layers, which repeat the sequence ``layers``.

    Errors are as in ``matrix``.
    """

    def compute() -> Frozen[_stack.Reach]:
        allowed = [pattern(view.source, layer, head=view.head, causal=view.causal).allowed for layer in layers]
        with _compute_turn(max(map(len, allowed), default=0)):
            return Frozen(_stack.reach(allowed, depth, causal=view.causal))

    return _get_releasing_page(_reaches, _key((view, layers, depth)), compute).value


def head_miniatures(source: Source, causal: bool, special: bool = True, size: int = 24) -> np.ndarray:
    """Return softmax's matrix in each of L layers and H heads, pooled to ``s ≤ size`` rows, as ``uint8 [L, H, s, s]``.

    ``matrix_board.shades`` explains the byte values. A source without a model has one layer.
    """
    draw = partial(miniatures, causal=causal, special=_shows_all_tokens(source, special), size=size)
    return _get_for_all_layers(_miniatures, source, lambda layers: shades(draw(layers).numpy()), draw.keywords)


def head_scores(source: Source, causal: bool, special: bool) -> tuple[_head_scores.HeadScores, ...]:
    """Return the scores that describe the heads, for each layer and head of a source."""
    score = partial(_head_scores.head_scores, causal=causal, special=_shows_all_tokens(source, special))
    return _get_for_all_layers(_scores, source, score, score.keywords)


_denoised: ByteLRUCache[Frozen[_denoised_image.DenoisedImage]] = cache(8, 2)
_attention_maps: ByteLRUCache[Frozen[_denoised_image.AttentionMaps]] = cache(4, 4)


def denoised(source: ImageSource, attention: ac.Attention) -> _denoised_image.DenoisedImage:
    """Return the image that a variant computes from all pixels of a noisy image.

    Raises:
        LabError: if the image cannot be read.
    """
    qkv = record(source, source.size**2)
    compute = partial(_denoised_image.denoise, qkv, source.clean(), attention)
    return _get_or_compute(_denoised, _key((source, attention)), compute, qkv.n)


def attention_maps(source: ImageSource, attention: ac.Attention) -> _denoised_image.AttentionMaps:
    """Return the attention maps of a noisy image, which show where each pixel attends.

    Errors are as in ``denoised``.
    """
    qkv = record(source, source.size**2)
    compute = partial(_denoised_image.attention_maps, qkv, attention)
    return _get_or_compute(_attention_maps, _key((source, attention)), compute, qkv.n)


def _get_for_all_layers(
    results: ByteLRUCache[Frozen[T]],
    source: Source,
    compute: Callable[[Sequence[ac.inputs.QKV]], T],
    settings: Mapping[str, Hashable],
) -> T:
    """Return a cached result about all layers of a source; ``settings`` distinguish results about the same source."""
    source = source.canonical

    def compute_in_turn() -> Frozen[T]:
        layers = every_layer(source)
        with _compute_turn(layers[0].n):
            return Frozen(compute(layers))

    return _get_releasing_page(results, _key((source, *settings.values())), compute_in_turn).value


def _get_releasing_page(results: ByteLRUCache[T], key: Hashable, compute: Callable[[], T]) -> T:
    """Return a cached result, or compute it. Other visitors' pages are drawn during the long computation."""
    if (result := results.known(key)) is not None:
        return result
    show_spinner()
    with page_lock().released():
        return results.get(key, compute)
