"""What one query of linear attention finds summed up, and how it reads it."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from app.inside import pictures
from app.inside.kernels import TINIEST
from app.inside.step import Seen
from app.text import _


@dataclass(frozen=True, eq=False)
class Sum:
    """What one query finds summed up.

    Attributes:
        feature: its own features, ``[C]``.
        values: ``φ(K)ᵀ V`` over the keys it sees, ``[C, d_v]``.
        keys: ``Σ φ(k)`` over the same, ``[C]``.
    """

    feature: np.ndarray
    values: np.ndarray
    keys: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """What it reads, ``[d_v]``."""
        read: np.ndarray = self.feature @ self.values / max(self.feature @ self.keys, TINIEST)
        return read


def sum_for(seen: Seen, query: int) -> Sum:
    """The sums that a query reads: over all keys, or causal over those up to itself."""
    inputs = [x[seen.head, : query + 1 if seen.causal else None].double() for x in (seen.qkv.q, seen.qkv.k, seen.qkv.v)]
    anatomy = seen.attention.variant.anatomy
    assert anatomy is not None
    # Over just the keys it sees all share one reference, which exp's features need to be summed.
    found = anatomy(*inputs, seen.attention.params, causal=False)
    keys = found["key_features"].numpy()
    return Sum(found["query_features"][query].numpy(), keys.T @ inputs[-1].numpy(), keys.sum(0))


def draw_reading(found: Sum, key: str) -> None:
    """The query's features, the keys' sum they divide by, and what comes out."""
    feature = _("feature")
    parts = (
        ("φ(q)", found.feature, feature, _("Bars: the features of the query")),
        ("z = Σ φ(k)", found.keys, feature, _("Bars: the sum of the keys' features")),
        ("φ(q)ᵀ S / φ(q)ᵀ z", found.output, _("entry of the output"), _("Bars: the output of the query")),
    )
    for place, (column, (name, values, title, alt)) in enumerate(zip(st.columns(3), parts, strict=True)):
        with column:
            pictures.bars(
                {name: values},
                [str(i) for i in range(len(values))],
                key=f"{key}.read.{place}",
                x_title=title,
                y_title=name,
                alt=alt,
                height=260,
            )
