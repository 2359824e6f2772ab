"""The only caches, the only queue, the only place that calls slow things.

A result is keyed on frozen specs and words, never on arrays. Cached matrices are numpy; records and models are shared
between visitors and never changed. Heavy work passes one bounded gate, so that light pages stay quick.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import streamlit as st

import attention_core as ac
import attention_core.looks.cur as _cur
import attention_core.looks.future as _future
import attention_core.looks.gating as _gating
import attention_core.looks.gau as _gau
import attention_core.looks.influence as _influence
import attention_core.looks.inside as _inside
import attention_core.looks.pattern as _pattern
import attention_core.looks.performer_bias as _performer_bias
import attention_core.looks.recurrent_state as _recurrent_state
import attention_core.looks.stack as _stack
import attention_core.looks.token_weight as _token_weight
from app.gate import Gate
from attention_core.experiments.task import Task
from attention_core.inputs.source import Source
from attention_core.limits import current
from attention_core.looks.compare import Compared, compare
from attention_core.looks.miniatures import miniatures


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


@st.cache_resource
def gate() -> Gate:
    """The one queue of this process for heavy work."""
    return Gate(current().heavy_jobs)


# Everything a frozen spec says stands in its repr, but not an upload's bytes: those are hashed once, when they arrive.
_KEYS: dict[str | type[Any], Callable[[Any], Any]] = {ac.Attention: attrgetter("word")}
_KEYS |= dict.fromkeys((*Source.__subclasses__(), View, _gating.Gate), repr)

P = ParamSpec("P")
T = TypeVar("T")


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


def _look(of: Callable[Concatenate[ac.inputs.QKV, P], T], entries: int = 1) -> Callable[Concatenate[Source, P], T]:
    """A look that is given a source in place of its record, cached; else its arguments and its errors are its own.

    Args:
        of: one of ``attention_core.looks``.
        entries: results kept, in multiples of ``cached_results``; fewer where they are large.
    """

    def found(source: Source, /, *args: P.args, **kwargs: P.kwargs) -> T:
        qkv = record(source)
        with gate().turn():
            return of(qkv, *args, **kwargs)

    # Streamlit tells caches apart by the function's name and code: the code is the same for all.
    found.__module__, found.__qualname__ = of.__module__, of.__qualname__
    cached = st.cache_data(max_entries=entries * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
    return cached(found)


_compared = _look(compare, 8)
pattern = _look(_pattern.pattern, 8)
hashed = _look(_pattern.hashed)
inside = _look(_inside.look, 8)
gau = _look(_gau.look)
performer_means = _look(_performer_bias.means, 2)
future_share = _look(_future.future_share, 8)
columns_and_rows = _look(_cur.look)
influence = _look(_influence.influence, 8)
grown = _look(_recurrent_state.grow)
causal_weights = _look(_token_weight.causal_weights, 2)
gated = _look(_gating.gated)


def matrix(view: View, attention: ac.Attention) -> Compared:
    """One variant's matrix on a view, and its numbers; errors as of ``compare``."""
    return _compared(view.source, attention, head=view.head, causal=view.causal, special=view.special)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def reach(view: View, layers: tuple[ac.Attention, ...], depth: int) -> _stack.Reach:
    """How far a stack of variants reaches, repeated until it is so deep; errors as of ``matrix``."""
    allowed = [pattern(view.source, layer, head=view.head, causal=view.causal).allowed for layer in layers]
    with gate().turn():
        return _stack.reach(allowed, depth, causal=view.causal)


@st.cache_data(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def head_miniatures(source: Source, causal: bool) -> np.ndarray:
    """Softmax in every layer and head of a source, ``[L, H, s, s]``; one layer where there is no model."""
    with gate().turn():
        return miniatures(source.layers(_load), causal=causal).numpy()


def rows(experiment: str, task: Task) -> tuple[Any, ...]:
    """What one task of an experiment finds, computed once for all visitors.

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
def _rows(experiment: str, key: str, _task: Task) -> tuple[Any, ...]:
    return execute(experiment, _task)


def execute(experiment: str, task: Task) -> tuple[Any, ...]:
    """Run one task and wait for its rows: here, in this process, behind the gate. Nothing else knows where.

    One that says it is ``timed`` has the machine to itself as far as this process goes; heavy work that waits passes
    between two of them. Arguments and errors as of ``rows``.
    """
    folder = "attention_core" if experiment == "claims" else "attention_core.experiments"
    module = importlib.import_module(f"{folder}.{experiment}")
    with gate().alone() if getattr(task, "timed", False) else gate().turn():
        return tuple(module.run(task, load=_load))


def _load(source: Source, tokens: int | None) -> ac.inputs.QKV:
    # Whoever fills the cache of records holds its lock while waiting at the gate: waiting for that lock inside would
    # let both wait for ever.
    with gate().away():
        return record(source, tokens)
