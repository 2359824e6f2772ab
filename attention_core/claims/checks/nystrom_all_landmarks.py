"""Claim: Nyström attention in which every token is a landmark equals softmax."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import articles, metrics, registry
from attention_core.claims.claim import (
    FUTURE,
    READ_BOTH_WAYS,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    future,
)

EXACT, ITERATED = "exact inverse", "six iterations"
MOST = 256
"""Maximum number of tokens: singular values of many large matrices would dominate the time of all claims."""
INVERSES = {EXACT: "exact", ITERATED: "iterative"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarksRow:
    """The relative error of one head's matrix, and ``FUTURE``.

    ``condition`` is the condition number of softmax's own matrix, which is inverted when every token is a landmark.
    """

    inverse: str
    landmarks: int
    n: int
    head: int
    condition: float
    error: float
    future: float


def measure(inputs: ExperimentInput) -> Iterator[LandmarksRow]:
    """Yield the relative error of the matrix with n/8, n/4, n/2 and n landmarks, per head, in float64."""
    qkv = inputs.record(min(inputs.record().n, MOST))
    q, k = qkv.q.double(), qkv.k.double()
    exact = registry.get("softmax").weights(q, k)
    hidden = future(qkv)
    values = metrics.singular_values(exact)
    # Singular values below the rounding error of the largest one are rounding errors themselves.
    least = torch.maximum(values[..., -1], values[..., 0] * torch.finfo(values.dtype).eps)
    conditions = (values[..., 0] / least).tolist()
    for landmarks in sorted({max(1, qkv.n // share) for share in (8, 4, 2, 1)}):
        for inverse, how in INVERSES.items():
            nystrom = registry.get("nystrom", landmarks=landmarks, inverse=how)
            errors = inputs.by_head(metrics.relative_error(nystrom.weights(q, k), exact))
            for (head, error), condition in zip(errors, conditions, strict=True):
                yield LandmarksRow(
                    inverse=inverse,
                    landmarks=landmarks,
                    n=qkv.n,
                    head=head,
                    condition=condition,
                    error=max(error, torch.finfo(q.dtype).eps),
                    future=hidden,
                )


def numbers(rows: Sequence[LandmarksRow]) -> Numbers:
    """Return the largest error with the exact inverse, the median with iterations, and the largest condition number."""
    exact, iterated = (
        [row.error for row in rows if row.inverse == inverse and row.landmarks == row.n] for inverse in INVERSES
    )
    return {
        "error": max(exact),
        "condition": math.log10(max(row.condition for row in rows)),
        "iterated": median(iterated),
        "tokens": rows[0].n,
        "future": rows[0].future,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the largest error over heads with the exact inverse."""
    if numbers["error"] > bounds["near"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["error"] <= bounds["equal"] else Verdict.PARTLY


CLAIM = Claim(
    key="nystrom_all_landmarks",
    number=7,
    statement="With every token its own landmark (m = n) and an exact inverse, Nyström attention is softmax itself.",
    source=articles.NYSTROMFORMER,
    place=Place("error", variants=("softmax", "nystrom")),
    experiment="Nyström's matrix with n/8, n/4, n/2 and n landmarks, by the exact inverse and by six iterations, is "
    "compared with softmax's on 256 tokens at most, in double precision.",
    rule="Holds where no head's matrix with n landmarks and the exact inverse errs by more than {equal}, partly up to "
    "{near}.",
    bounds={"equal": 1e-6, "near": 1e-2},
    finding="With {tokens} landmarks for {tokens} tokens the exact inverse errs by {error} at most, though the matrix "
    "it inverts has a condition number of 10 to the power {condition}; six iterations err by {iterated}.",
    quantities=(
        Quantity("error", "largest error, exact inverse", digits=2),
        Quantity("condition", "condition number, power of ten", digits=2),
        Quantity("iterated", "error, six iterations"),
        Quantity("tokens", "tokens and landmarks", "tokens"),
        FUTURE,
    ),
    figure=Figure(
        x="landmarks",
        y="error",
        by="inverse",
        x_title="landmarks m",
        y_title="relative error beside softmax",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    notes=(READ_BOTH_WAYS,),
    theorem="A A⁺ A = A for every matrix A and its pseudoinverse A⁺: softmax's own matrix A is all three factors once "
    "every token is a landmark.",
)
