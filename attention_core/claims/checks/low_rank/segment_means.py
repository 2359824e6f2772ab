"""Claim: segment means serve Nyström attention about as well as k-means clusters do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE, FUTURE, MEASURED_UNMASKED, check_not_uniform, future

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
        row = {"share": share, "landmarks": qkv.n // share, "future": hidden}
        for method, word in METHODS.items():
            nystrom = registry.get("nystrom", landmarks=qkv.n // share, method=word)
            work = nystrom.cost(qkv.n, qkv.q.shape[-1]).multiply_adds
            error = metrics.relative_error(nystrom.weights(qkv.q, qkv.k), exact)
            yield from inputs.head_rows(SegmentsRow, **row, method=method, error=error, work=work)
        yield from inputs.head_rows(SegmentsRow, **row, method=UNIFORM, error=uniform, work=None)


def numbers(rows: Sequence[SegmentsRow]) -> Numbers:
    """Return median errors, the median and third quartile of the error ratio, and the cost ratio of k-means."""
    judged = [row for row in rows if row.share == JUDGED]
    segments, clusters, uniform = (
        np.array(values(judged, "error", method=method)) for method in (SEGMENTS, CLUSTERS, UNIFORM)
    )
    # Errors that are both rounding errors count as equal.
    ratio = (segments + FLOAT32_TOLERANCE) / (clusters + FLOAT32_TOLERANCE)
    return {
        "ratio": float(np.median(ratio)),
        "most": float(np.quantile(ratio, 0.75)),
        "segments": float(np.median(segments)),
        "clusters": float(np.median(clusters)),
        "uniform": float(np.median(uniform)),
        "times": values(judged, "work", method=CLUSTERS)[0] / values(judged, "work", method=SEGMENTS)[0],
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
    measure,
    numbers,
    verdict,
    statement="With one landmark for every four tokens, segment means work about as well in Nyström attention as "
    "k-means clusters, which cost more.",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "nystrom~method~kmeans"}),
    experiment="In every head, Nyström attention is compared with softmax twice: with segment means as landmarks, "
    "and with k-means centres as landmarks. K-means starts from the segment means and runs for four rounds. For n "
    "tokens, the figure also shows n/8 and n/2 landmarks.",
    rule="Two conditions: (1) In three quarters of the heads, the error with segment means is at most {near}× the "
    "error with k-means. (2) The median error with segment means is at most {useful}× that of uniform attention. The "
    "claim holds if both conditions are met. It holds partly if the first condition is met in half of the heads.",
    bounds={"near": 1.1, "useful": 0.9},
    finding="The error with segment means is {ratio}× the error with k-means in the median head, and at most {most}× "
    "in three quarters of the heads. The median error is {segments} with segment means and {clusters} with k-means. "
    "K-means needs {times}× as many multiply-adds.",
    quantities=(
        Quantity("ratio", "error ÷ k-means error, median head"),
        Quantity("most", "error ÷ k-means error, three quarters"),
        Quantity("segments", "error of segment means"),
        Quantity("clusters", "error of k-means"),
        Quantity("uniform", "error of uniform attention"),
        Quantity("times", "multiply-adds ratio, k-means"),
        Quantity("landmarks", "landmarks, n/4"),
        FUTURE,
    ),
    figure=Figure(x="landmarks", y="error", by="method", x_title="landmarks m", y_title="relative error", log="xy"),
    notes=(MEASURED_UNMASKED,),
    noncausal_method="Nyström",
    needs=16,
)
