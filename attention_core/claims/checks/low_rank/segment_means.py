"""Claim: in Nyström attention, means of consecutive tokens are about as good landmarks as k-means clusters are."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from attention_core import articles
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Place, Quantity, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE, FUTURE
from attention_core.claims.landmark_errors import FIGURE, JUDGED, UNIFORM, LandmarkRow, judged_errors, landmark_rows
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of

SEGMENTS, CLUSTERS = "means of neighbouring tokens", "k-means centres"
FORMS = {SEGMENTS: "nystrom~method~segment_means", CLUSTERS: "nystrom~method~kmeans"}


def numbers(rows: Sequence[LandmarkRow]) -> Numbers:
    """Return the numbers of the claim: over heads, the median errors with segment means, k-means and equal weights.

    The ratio of errors, segment means to k-means, has its median and third quartile. Further numbers are the ratio of
    multiply-adds, k-means to segment means, the number of landmarks, and the share of attention to later tokens.
    """
    segments, clusters, uniform = judged_errors(rows, SEGMENTS, CLUSTERS, UNIFORM)
    # If both errors are only rounding errors, the tolerance makes their ratio about 1.
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
    statement="Nyström attention represents all tokens by a few vectors (landmarks). With averages of neighbouring "
    "tokens as landmarks, it is about as accurate as with averages of similar tokens (k-means), which cost more.",
    short="averaging neighbours is as good as k-means",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "nystrom~landmarks~{landmarks}~method~kmeans"}),
    experiment="Nyström attention summarises the tokens by landmarks. Two kinds of landmarks are compared: means of "
    "neighbouring tokens, and k-means centres, which are means of similar tokens. K-means starts from the means of "
    "neighbouring tokens and runs for four rounds. The matrix error is the size of the difference from softmax's "
    "matrix, divided by the size of softmax's matrix. The verdict uses one landmark for every four tokens. The "
    "figure also shows one for every eight tokens and one for every two tokens.",
    measure=partial(landmark_rows, forms=FORMS),
    rule="Nyström attention represents the tokens by averages (landmarks), with one landmark for every four tokens. "
    "Its matrix error is the relative difference of its matrix from softmax's matrix. For each head, the error "
    "with averages of neighbouring tokens is divided by the error with k-means centres. The claim holds if two "
    "conditions are met. (1) The third quartile of this ratio over heads is at most {near}, so the ratio is at "
    "most {near} in about 75% of the heads. (2) With averages of neighbouring tokens, the median matrix error "
    "over heads is at most {useful}× that of uniform attention, which gives all keys equal weights. Otherwise, "
    "the claim partly holds if the median of the ratio over heads is at most {near}.",
    bounds={"near": 1.1, "useful": 0.9},
    verdict=Rule(
        requires=Condition("ratio", "<=", "near"),
        holds=all_of(Condition("most", "<=", "near"), Condition("segments", "<=", Measured("uniform", "useful"))),
    ),
    finding="The landmarks of Nyström attention can be averages of neighbouring tokens or, with k-means, of similar "
    "tokens. Averaging neighbours gives at most {most}× the matrix error (difference from softmax's matrix) of "
    "k-means (in about three quarters of the heads).",
    details="With k-means, the matrix error is {clusters} (median over heads). Nyström attention with k-means needs "
    "{times}× as many multiply-adds as with neighbouring tokens.",
    quantities=(
        Quantity(
            "ratio", "ratio of matrix errors: landmarks from neighbouring tokens ÷ from k-means, median over heads"
        ),
        Quantity(
            "most",
            "ratio of matrix errors: landmarks from neighbouring tokens ÷ from k-means, third quartile over heads",
        ),
        Quantity("segments", "matrix error with means of neighbouring tokens, median over heads", share=True),
        Quantity("clusters", "matrix error of Nyström attention with k-means centres, median over heads", share=True),
        Quantity("uniform", "matrix error of uniform attention (equal weights), median over heads", share=True),
        Quantity(
            "times", "multiply-adds of Nyström attention with k-means centres ÷ with means of neighbouring tokens"
        ),
        Quantity("landmarks", "number of landmarks (a quarter of the tokens)"),
        FUTURE,
    ),
    figure=FIGURE,
    noncausal_method="Nyström",
    needs=16,
)
