"""The only caches, the only queue, the only place that calls slow things.

A result is keyed on frozen specs and words, never on arrays. Cached matrices are numpy; records and models are shared
between visitors and never changed. Heavy work passes one bounded gate, so that light pages stay quick.
"""

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

import attention_core as ac
from attention_core.experiments.compare import compare
from attention_core.experiments.miniatures import miniatures
from attention_core.experiments.task import Row, Task
from attention_core.inputs.source import Source, TextSource, UploadSource
from attention_core.limits import current
from attention_core.metrics.passport import Passport


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


class Gate:
    """Lets a bounded number of threads through at a time; a thread inside may enter again."""

    def __init__(self, places: int) -> None:
        self._places = threading.BoundedSemaphore(places)
        self._inside = threading.local()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn."""
        if getattr(self._inside, "yes", False):
            yield
            return
        with self._places:
            self._inside.yes = True
            try:
                yield
            finally:
                self._inside.yes = False


@st.cache_resource
def gate() -> Gate:
    """The one queue of this process for heavy work."""
    return Gate(current().heavy_jobs)


# An upload is known by its digest: its bytes are hashed once, when it arrives.
_KEYS: dict[str | type[Any], Callable[[Any], Any]] = {UploadSource: lambda source: source.digest}


@st.cache_resource(max_entries=current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def record(source: Source, tokens: int | None = None) -> ac.inputs.QKV:
    """The queries, keys and values a source stands for, at its own length or another.

    Raises:
        LabError: if the source cannot become a record.
    """
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


@st.cache_data(max_entries=256 * current().cached_results, show_spinner=False, hash_funcs=_KEYS)
def rows(experiment: str, task: Task) -> tuple[Row, ...]:
    """What one task of an experiment finds.

    Args:
        experiment: the module's name in ``attention_core.experiments``.
        task: one of the tasks that module's ``tasks`` made.

    Raises:
        LabError: if the task's source cannot be read at this length.
    """
    module = importlib.import_module(f"attention_core.experiments.{experiment}")
    with gate().turn():
        return tuple(module.run(task, load=record))
