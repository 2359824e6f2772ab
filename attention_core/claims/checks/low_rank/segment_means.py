"""Claim: in Nyström attention, means of consecutive tokens are about as good landmarks as k-means clusters are."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from attention_core import articles
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE, FUTURE, MEASURED_UNMASKED
from attention_core.claims.landmark_errors import FIGURE, JUDGED, UNIFORM, LandmarkRow, judged_errors, landmark_rows
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of

SEGMENTS, CLUSTERS = "segment means", "k-means"
FORMS = {SEGMENTS: "nystrom~method~segment_means", CLUSTERS: "nystrom~method~kmeans"}


def numbers(rows: Sequence[LandmarkRow]) -> Numbers:
    """Return median errors, the median and third quartile of the error ratio, and the cost ratio of k-means."""
    segments, clusters, uniform = judged_errors(rows, SEGMENTS, CLUSTERS, UNIFORM)
    # The tolerance makes the ratio 1 if both errors are only rounding errors.
    ratio = (segments + FLOAT32_TOLERANCE) / (clusters + FLOAT32_TOLERANCE)
    work, clustering = (values(rows, "work", form=form, share=JUDGED)[0] for form in FORMS)
    [landmarks] = {row.landmarks for row in rows if row.share == JUDGED}
    return {
        "ratio": float(np.median(ratio)),
        "most": float(np.quantile(ratio, 0.75)),
        "segments": float(np.median(segments)),
        "clusters": float(np.median(clusters)),
        "uniform": float(np.median(uniform)),
        "times": clustering / work,
        "landmarks": landmarks,
        "future": rows[0].future,
    }


CLAIM = Claim(
    statement="Nyström attention needs a few vectors (landmarks) that represent all tokens. Averages of neighbouring "
    "tokens are about as accurate as averages of similar tokens (k-means), which cost more.",
    short="averages of neighbours are as good as k-means",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "nystrom~method~kmeans"}),
    experiment="Nyström attention summarises the tokens by landmarks. Two kinds of landmarks are compared: segment "
    "means, which are means of neighbouring tokens, and k-means centres, which are means of similar tokens. K-means "
    "starts from the segment means and runs for four rounds. The matrix error is the size of the difference from "
    "softmax's matrix, divided by the size of that matrix. The figure also includes results for one landmark per "
    "eight tokens and for one per two tokens.",
    measure=partial(landmark_rows, forms=FORMS),
    numbers=numbers,
    rule="Landmarks are a few vectors that represent all tokens, with one landmark for every four tokens. A matrix "
    "error is the relative difference from softmax's matrix. Two conditions: (1) In 75% of the heads, averaging "
    "neighbouring tokens gives at most {near}× the matrix error of k-means centres. (2) In the median head, averaging "
    "neighbouring tokens gives at most {useful}× the matrix error of uniform attention, which gives all keys equal "
    "weights. The claim holds if both conditions are met. Otherwise it holds partly if the first condition is met in "
    "50% of the heads.",
    bounds={"near": 1.1, "useful": 0.9},
    verdict=Rule(
        requires=Condition("ratio", "<=", "near"),
        holds=all_of(Condition("most", "<=", "near"), Condition("segments", "<=", Measured("uniform", "useful"))),
    ),
    finding="K-means averages similar tokens instead of neighbouring ones. In 75% of the heads, averaging neighbours "
    "gives at most {most}× the matrix error of k-means centres.",
    details="In the median head, the ratio of these two errors is {ratio}. The matrix error is {segments} with "
    "means of neighbouring tokens and {clusters} with k-means centres. K-means needs {times}× as many multiply-adds.",
    notes=(MEASURED_UNMASKED,),
    quantities=(
        Quantity(
            "ratio",
            "matrix error with segment means ÷ matrix error with k-means centres, median over heads",
            brief="ratio of the matrix errors in the median head",
        ),
        Quantity(
            "most",
            "matrix error with segment means ÷ matrix error with k-means centres, third quartile over heads",
            brief="ratio of the matrix errors, third quartile of the heads",
        ),
        Quantity(
            "segments",
            "matrix error of Nyström attention with segment means, median over heads",
            share=True,
            brief="matrix error in the median head",
        ),
        Quantity("clusters", "matrix error of Nyström attention with k-means centres, median over heads", share=True),
        Quantity("uniform", "matrix error of uniform attention (equal weights), median over heads", share=True),
        Quantity("times", "multiply-adds of Nyström attention with k-means centres ÷ with segment means"),
        Quantity("landmarks", "number of landmarks (a quarter of the tokens)"),
        FUTURE,
    ),
    figure=FIGURE,
    noncausal_method="Nyström",
    needs=16,
)
