"""The only caches, the only queue, the only place that calls slow things.

A result is keyed on frozen specs and words, never on arrays. Cached matrices are numpy; records and models are shared
between visitors and never changed. Heavy work passes one bounded gate, so that light pages stay quick.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import streamlit as st

import attention_core as ac
from app.share import read_variants
from attention_core.experiments.compare import compare
from attention_core.experiments.miniatures import miniatures
from attention_core.inputs.synthetic import SyntheticSpec
from attention_core.limits import current
from attention_core.metrics.passport import Passport


@dataclass(frozen=True)
class TextSpec:
    """A text through one layer of a model."""

    text: str
    model: str
    layer: int


@dataclass(frozen=True)
class UploadSpec:
    """An uploaded file by the digest of its bytes."""

    name: str
    digest: str


InputSpec = TextSpec | SyntheticSpec | UploadSpec


@dataclass(frozen=True, kw_only=True)
class View:
    """What every panel of a comparison shares.

    Attributes:
        source: what the queries, keys and values come from.
        head: the head looked at, None for the average.
        causal: whether the future is hidden.
        special: whether special tokens are shown.
    """

    source: InputSpec
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
def _gate() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(current().heavy_jobs)


@contextmanager
def turn() -> Iterator[None]:
    """Wait for a turn at heavy work."""
    with _gate():
        yield


@st.cache_resource(max_entries=current().cached_results, show_spinner=False)
def record(source: InputSpec, _data: bytes | None = None) -> ac.inputs.QKV:
    """The queries, keys and values a source stands for.

    Args:
        source: the spec, which alone decides the result.
        _data: the bytes of an upload, of which the spec holds the digest.

    Raises:
        LabError: if the source cannot become a record.
    """
    with turn():
        if isinstance(source, TextSpec):
            return ac.inputs.from_text(source.text, model=source.model, layer=source.layer)
        if isinstance(source, UploadSpec):
            return ac.inputs.from_upload(_data or b"", source.name)
        return ac.inputs.from_synthetic(source)


@st.cache_data(max_entries=8 * current().cached_results, show_spinner=False)
def matrix(view: View, word: str, _data: bytes | None = None) -> Matrix:
    """One variant's matrix on a view.

    Args:
        view: what all panels share.
        word: the variant and its settings as a link writes them.
        _data: the bytes of an upload.

    Raises:
        LabError: if the source cannot be read, or the variant cannot be causal and the view is.
    """
    qkv = record(view.source, _data)
    (attention,) = read_variants([word])
    with turn():
        found = compare(qkv, attention, head=view.head, causal=view.causal, special=view.special)
    return Matrix(
        weights=found.weights.numpy(),
        difference=found.difference.numpy(),
        passport=found.passport,
        output_error=found.output_error,
        uniform_error=found.uniform_error,
    )


@st.cache_data(max_entries=current().cached_results, show_spinner=False)
def head_miniatures(source: InputSpec, causal: bool, _data: bytes | None = None) -> np.ndarray:
    """Softmax in every layer and head of a source, ``[L, H, s, s]``; one layer where there is no model."""
    if isinstance(source, TextSpec):
        with turn():
            layers = ac.inputs.record_layers(source.text, model=source.model)
    else:
        layers = (record(source, _data),)
    with turn():
        return miniatures(layers, causal=causal).numpy()
