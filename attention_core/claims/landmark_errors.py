"""An experiment for several claims about landmarks: errors of attention variants with equally many landmarks.

A landmark is a mean of some tokens that represents them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attention_core import metrics, registry
from attention_core.claims.claim import ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, values
from attention_core.claims.conditions import check_not_uniform, future_percent

UNIFORM = "equal weights"
TOKENS_PER_LANDMARK, JUDGED = (8, 4, 2), 4
"""Tokens per landmark: the values measured, and the value that the claims are judged at."""
FIGURE = Figure(
    x=Axis("landmarks", "number of landmarks m", log=True),
    y=Axis("error", "matrix error (%)", log=True),
    by="form",
    percent=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkRow:
    """The relative error of a head's matrix by one variant (``form``), with one landmark per ``share`` tokens.

    ``future`` (``FUTURE``): for a causal model, the percentage of softmax's attention on later tokens without a mask.
    ``work`` is the number of multiply-adds of one head; None for uniform attention.
    """

    share: int
    landmarks: int
    future: float
    form: str
    head: int
    error: float
    work: float | None = None


def landmark_rows(inputs: ExperimentInput, forms: Mapping[str, str]) -> Iterator[LandmarkRow]:
    """Yield the relative error of each head's matrix, for each variant in ``forms`` and for uniform attention.

    All variants are measured with the same numbers of landmarks, which follow from ``TOKENS_PER_LANDMARK``.

    Args:
        inputs: the input.
        forms: the words of the variants, without their number of landmarks, by the names shown.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k)
    uniform, hidden = metrics.uniform_error(exact), future_percent(qkv)
    check_not_uniform(uniform)
    for share in TOKENS_PER_LANDMARK:
        row = {"share": share, "landmarks": qkv.n // share, "future": hidden}
        for form, word in forms.items():
            variant = registry.from_word(f"{word}~landmarks~{qkv.n // share}")
            error = metrics.relative_error(variant.weights(qkv.q, qkv.k), exact)
            work = variant.cost(qkv.n, qkv.q.shape[-1]).multiply_adds
            yield from inputs.head_rows(LandmarkRow, **row, form=form, error=error, work=work)
        yield from inputs.head_rows(LandmarkRow, **row, form=UNIFORM, error=uniform)


def judged_errors(rows: Sequence[LandmarkRow], *forms: str) -> list[np.ndarray]:
    """Return each variant's errors, one per head, at the number of landmarks that the verdict uses."""
    return [np.array(values(rows, "error", form=form, share=JUDGED)) for form in forms]
