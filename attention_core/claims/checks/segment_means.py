"""Claim: segment means serve Nyström attention about as well as k-means clusters do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from attention_core import articles, metrics, registry
from attention_core.claims.claim import (
    FLOAT32_TOLERANCE,
    FUTURE,
    READ_BOTH_WAYS,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    check_not_uniform,
    future,
)

SEGMENTS, CLUSTERS, UNIFORM = "segment means", "k-means", "uniform attention"
METHODS = {SEGMENTS: "segment_means", CLUSTERS: "kmeans"}
SHARES, JUDGED = (8, 4, 2), 4
"""Tokens per landmark: the values measured, and the value that the claim is judged at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsRow:
    """The relative error of one head's matrix with one landmark per ``share`` tokens, and ``FUTURE``.

    ``work`` is the number of multiply-adds of one head.
    """

    share: int
    landmarks: int
    future: float
    method: str
    head: int
    error: float
    work: float | None


def measure(inputs: ExperimentInput) -> Iterator[SegmentsRow]:
    """Yield the relative error of the matrix per head, with both kinds of landmarks and with uniform attention.

    Raises:
        UntestableError: if all tokens have the same weight.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k)
    uniform, hidden = metrics.uniform_error(exact), future(qkv)
    check_not_uniform(uniform)
    for share in SHARES:
        row = partial(SegmentsRow, share=share, landmarks=qkv.n // share, future=hidden)
        for method, word in METHODS.items():
            nystrom = registry.get("nystrom", landmarks=qkv.n // share, method=word)
            work = nystrom.cost(qkv.n, qkv.q.shape[-1]).multiply_adds
            errors = metrics.relative_error(nystrom.weights(qkv.q, qkv.k), exact)
            for head, error in inputs.by_head(errors):
                yield row(method=method, head=head, error=error, work=work)
        for head, error in inputs.by_head(uniform):
            yield row(method=UNIFORM, head=head, error=error, work=None)


def numbers(rows: Sequence[SegmentsRow]) -> Numbers:
    """Return median errors, the median and third quartile of the error ratio, and the cost ratio of k-means."""
    judged = [row for row in rows if row.share == JUDGED]
    found = {name: np.array([row.error for row in judged if row.method == name]) for name in (*METHODS, UNIFORM)}
    work = {row.method: row.work for row in judged if row.work is not None}
    # Errors that are both rounding errors count as equal.
    ratio = (found[SEGMENTS] + FLOAT32_TOLERANCE) / (found[CLUSTERS] + FLOAT32_TOLERANCE)
    return {
        "ratio": float(np.median(ratio)),
        "most": float(np.quantile(ratio, 0.75)),
        "segments": float(np.median(found[SEGMENTS])),
        "clusters": float(np.median(found[CLUSTERS])),
        "uniform": float(np.median(found[UNIFORM])),
        "times": work[CLUSTERS] / work[SEGMENTS],
        "landmarks": judged[0].landmarks,
        "future": judged[0].future,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the ratio of the errors; ``PARTLY`` if segment means barely beat uniform attention."""
    if numbers["ratio"] > bounds["near"]:
        return Verdict.FAILS
    useful = numbers["segments"] <= bounds["useful"] * numbers["uniform"]
    return Verdict.HOLDS if useful and numbers["most"] <= bounds["near"] else Verdict.PARTLY


CLAIM = Claim(
    key="segment_means",
    number=21,
    statement="With one landmark for every four tokens, means of neighbours serve Nyström attention about as well as "
    "k-means clusters, which cost more to find.",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "nystrom~method~kmeans"}),
    experiment="Nyström attention is compared with softmax, head by head, with segment means and with k-means "
    "landmarks (four rounds from segment means); beside n/4 landmarks n/8 and n/2 are drawn.",
    rule="Holds where in three quarters of the heads segment means err by at most {near}× what k-means does, and "
    "in the middle head by at most {useful} of what uniform attention does; partly where in half of the heads.",
    bounds={"near": 1.1, "useful": 0.9},
    finding="With {landmarks} landmarks segment means err by {segments} and k-means, at {times}× the "
    "multiply-adds, by {clusters} (uniform attention by {uniform}). Segment means err by {ratio}× as much in the "
    "middle head and by at most {most}× in three quarters of them.",
    quantities=(
        Quantity("ratio", "error over that of k-means, middle head"),
        Quantity("most", "the same, three quarters of the heads"),
        Quantity("segments", "error with segment means"),
        Quantity("clusters", "error with k-means"),
        Quantity("uniform", "error of uniform attention"),
        Quantity("times", "multiply-adds of k-means over segment means"),
        Quantity("landmarks", "landmarks, n/4"),
        FUTURE,
    ),
    figure=Figure(
        x="landmarks",
        y="error",
        by="method",
        x_title="landmarks m",
        y_title="relative error beside softmax",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    notes=(READ_BOTH_WAYS,),
    noncausal_method="Nyström",
    needs=16,
)
