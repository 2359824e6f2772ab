"""The only caches, the only queue, the only place that calls slow things.

A result is keyed on frozen specs and words, never on arrays. Cached matrices are numpy; records and models are shared
between visitors and never changed. Heavy work passes one bounded gate, so that light pages stay quick.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

import attention_core as ac
import attention_core.experiments.cur as _cur
import attention_core.experiments.fading as _fading
import attention_core.experiments.future as _future
import attention_core.experiments.gating as _gating
import attention_core.experiments.gau as _gau
import attention_core.experiments.inside as _inside
import attention_core.experiments.leak as _leak
import attention_core.experiments.performer_bias as _performer_bias
import attention_core.experiments.reach as _reach
import attention_core.experiments.state as _state
from app.gate import Gate
from attention_core.experiments.compare import compare
from attention_core.experiments.miniatures import miniatures
from attention_core.experiments.reach import Hashed, Pattern, Reach
from attention_core.experiments.task import Row, Task
from attention_core.inputs.source import Source, SyntheticSource, TextSource, UploadSource
from attention_core.limits import current
from attention_core.metrics.passport import Passport
from attention_core.variants.kernel.performer import PerformerParams


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


@dataclass(frozen=True, eq=False)
class Matrix:
    """One variant's matrix and its numbers, ready to draw; ``weights`` and ``difference`` are ``[n, n]`` float32."""

    weights: np.ndarray
    difference: np.ndarray
    passport: Passport
    output_error: float
    uniform_error: float


@st.cache_resource
def gate() -> Gate:
    """The one queue of this process for heavy work."""
    return Gate(current().heavy_jobs)


# Everything a frozen spec says stands in its repr, but not an upload's bytes: those are hashed once, when they arrive.
_KEYS: dict[str | type[Any], Callable[[Any], Any]] = dict.fromkeys(
    (TextSource, SyntheticSource, UploadSource, View, _gating.Gate), repr
)


def record(source: Source, tokens: int | None = None) -> ac.inputs.QKV:
    """The queries, keys and values a source stands for, at its own length or another.

    Raises:
        LabError: if the source cannot become a record.
    """
    return _record(source, tokens)  # a default left out and one given would be two entries of the cache


@st.cache_resource(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def _record(source: Source, tokens: int | None) -> ac.inputs.QKV:
    with gate().turn():
        return source.load(tokens)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def matrix(view: View, word: str) -> Matrix:
    """One variant's matrix on a view.

    Args:
        view: what all panels share.
        word: the variant and its settings, as ``Attention.word`` writes them.

    Raises:
        LabError: if the source cannot be read, or the variant cannot be causal and the view is.
    """
    qkv = record(view.source)
    attention = ac.from_word(word)
    with gate().turn():
        found = compare(qkv, attention, head=view.head, causal=view.causal, special=view.special)
    return Matrix(
        weights=found.weights.numpy(),
        difference=found.difference.numpy(),
        passport=found.passport,
        output_error=found.output_error,
        uniform_error=found.uniform_error,
    )


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def pattern(view: View, word: str) -> Pattern:
    """Who may look at whom in one variant; arguments and errors as of ``matrix``."""
    qkv = record(view.source)
    with gate().turn():
        return _reach.pattern(qkv, ac.from_word(word), head=view.head, causal=view.causal)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def reach(view: View, words: tuple[str, ...], depth: int) -> Reach:
    """How far a stack of variants reaches, repeated until it is so deep; errors as of ``matrix``."""
    stack = [pattern(view, word).allowed for word in words]
    with gate().turn():
        return _reach.reach(stack, depth, causal=view.causal)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def hashed(view: View, word: str, number: int) -> Hashed | None:
    """How a round sorts the tokens of the view's head (the first, for an average); None where nothing is sorted."""
    qkv = record(view.source)
    with gate().turn():
        return _reach.hashed(qkv, ac.from_word(word), number, head=view.head or 0, causal=view.causal)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def inside(view: View, word: str) -> _inside.Inside:
    """One variant taken apart on the view's head (the first, for an average); arguments and errors as of ``matrix``."""
    qkv = record(view.source)
    with gate().turn():
        return _inside.look(qkv, ac.from_word(word), view.head or 0, view.causal)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def gau(source: Source, word: str, causal: bool) -> _gau.Look:
    """A gated attention unit on a source's values, its matrix by these settings of squared ReLU."""
    qkv = record(source)
    with gate().turn():
        return _gau.look(qkv, ac.from_word(word), causal=causal)


@st.cache_data(max_entries=2 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def performer_means(source: Source, head: int, word: str) -> _performer_bias.Means:
    """A Performer's similarities on a source's head in the mean, of all draws and of many; nothing is hidden."""
    qkv, params = record(source), ac.from_word(word).params
    assert isinstance(params, PerformerParams)
    with gate().turn():
        return _performer_bias.means(qkv, params, head=head)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def future_share(source: Source, head: int | None) -> float:
    """The share of softmax's mass that lies in the future where nothing is hidden; None for the mean of all heads."""
    qkv = record(source)
    with gate().turn():
        return _future.future_share(qkv, head=head)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def columns_and_rows(view: View, word: str, pick: str) -> _cur.Cur:
    """The view's head (the first, for an average) from as many columns and rows as Nyström attention has landmarks."""
    qkv = record(view.source)
    with gate().turn():
        return _cur.look(qkv, ac.from_word(word), view.head or 0, pick)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def leak(source: Source, head: int | None, word: str) -> _leak.Leak:
    """What moves in one variant when a token is replaced, for a source's head, None for all of them."""
    qkv = record(source)
    with gate().turn():
        return _leak.leak(qkv, ac.from_word(word), head=head)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def grown(source: Source, head: int, word: str) -> _state.Grown:
    """The state of one variant with a decoder after each token of a source's head."""
    qkv = record(source)
    with gate().turn():
        return _state.grow(qkv, ac.from_word(word), head=head)


@st.cache_data(max_entries=2 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def causal_weights(source: Source, head: int | None, word: str) -> np.ndarray:
    """One variant's causal matrix on a source's head, ``float64 [n, n]``; None for the average of all heads."""
    qkv = record(source)
    with gate().turn():
        return _fading.causal_weights(qkv, ac.from_word(word), head=head)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def gated(source: Source, head: int | None, rule: _gating.Gate, feature_map: str) -> _gating.Gated:
    """Linear attention under a gate on a source's head; None for the average of all heads."""
    qkv = record(source)
    with gate().turn():
        return _gating.gated(qkv, rule, feature_map, head=head)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def head_miniatures(source: Source, causal: bool) -> np.ndarray:
    """Softmax in every layer and head of a source, ``[L, H, s, s]``; one layer where there is no model."""
    if isinstance(source, TextSource):
        with gate().turn():
            layers = ac.inputs.record_layers(source.text, model=source.model)
    else:
        layers = (record(source),)
    with gate().turn():
        return miniatures(layers, causal=causal).numpy()


def rows(experiment: str, task: Task) -> tuple[Row, ...]:
    """What one task of an experiment finds; one that says it is ``timed`` has the machine to itself.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        task: one of the tasks that module's ``tasks`` made.

    Raises:
        LabError: if the task's source cannot be read at this length.
    """
    return _rows(experiment, repr(task), task)


def forget(experiment: str, task: Task) -> None:
    """Let ``rows`` compute a task anew, where its results differ from run to run."""
    _rows.clear(experiment, repr(task), task)


@st.cache_data(max_entries=256 * current().cached_results, show_spinner=False)
def _rows(experiment: str, key: str, _task: Task) -> tuple[Row, ...]:
    folder = "attention_core" if experiment == "claims" else "attention_core.experiments"
    module = importlib.import_module(f"{folder}.{experiment}")
    with gate().alone() if getattr(_task, "timed", False) else gate().turn():
        return tuple(module.run(_task, load=_load))


def _load(source: Source, tokens: int | None) -> ac.inputs.QKV:
    # Whoever fills the cache of records holds its lock while waiting at the gate: waiting for that lock inside would
    # let both wait for ever.
    with gate().away():
        return record(source, tokens)


def timed(samples: Iterator[Row]) -> Iterator[Row]:
    """Take timings one by one, never cached: each has the machine to itself as far as this process goes.

    Heavy work that waits passes between two of them.

    Args:
        samples: a run of an experiment that measures time; it may be taken up again where it was left.
    """
    while True:
        with gate().alone():
            sample = next(samples, None)
        if sample is None:
            return
        yield sample
