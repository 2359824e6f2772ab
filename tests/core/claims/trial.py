"""Inputs for the tests of claims, and a function that evaluates a claim on an input."""

import io
from dataclasses import dataclass

import numpy as np

from attention_core import claims
from attention_core.claims import Verdict
from attention_core.inputs import SyntheticSource, SyntheticSpec, UploadSource, to_npz


@dataclass(frozen=True)
class Trial:
    rows: list[object]
    numbers: dict[str, float]
    verdict: Verdict
    why: str

    def of(self, **where):
        """Return the rows whose attributes have these values."""
        return [row for row in self.rows if all(getattr(row, name) == value for name, value in where.items())]


def trial(key, source, head=None):
    """Return a claim's rows, numbers and verdict on an input."""
    [task] = claims.tasks(source, head=head, keys=[key])
    [found] = claims.run(task)
    return Trial(list(found.rows), dict(found.numbers), found.verdict, str(found.untestable_reason))


def synthetic(kind, **how):
    return SyntheticSource(SyntheticSpec(kind=kind, **how))


def saved(kind, **how):
    """Return a synthetic sequence as an uploaded file, which claims accept as the input of a trained model."""
    return UploadSource.of("arrays.npz", to_npz(synthetic(kind, **how).load()))


def upload(q, k=None, v=None, *, causal=False):
    """Return an upload of arrays ``[H, n, d]``; by default, keys equal the queries and values equal the keys."""
    k = q if k is None else k
    file = io.BytesIO()
    np.savez(file, q=q, k=k, v=k if v is None else v, causal=np.array(causal))
    return UploadSource.of("arrays.npz", file.getvalue())


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
