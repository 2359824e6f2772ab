"""Claim: inverting the matrix of weights between the landmarks brings Nyström attention closer to softmax."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from attention_core import articles
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Place, Quantity
from attention_core.claims.conditions import FUTURE
from attention_core.claims.landmark_errors import FIGURE, JUDGED, LandmarkRow, judged_errors, landmark_rows
from attention_core.claims.rule import Condition, Numbers, parts

DOUBLE, ITERATED, EXACT = "Nyström, no inverse", "Nyström, inverse from six iterations", "Nyström, exact inverse"
FORMS = {DOUBLE: "landmark", ITERATED: "nystrom", EXACT: "nystrom~inverse~exact"}


def numbers(rows: Sequence[LandmarkRow]) -> Numbers:
    """Return median errors over heads, and the percentage of heads in which each inverse has less error than none."""
    double, iterated, exact = judged_errors(rows, DOUBLE, ITERATED, EXACT)
    [landmarks] = {row.landmarks for row in rows if row.share == JUDGED}
    return {
        "iterated_wins": 100 * float((iterated < double).mean()),
        "exact_wins": 100 * float((exact < double).mean()),
        "double": float(np.median(double)),
        "iterated": float(np.median(iterated)),
        "exact": float(np.median(exact)),
        "landmarks": landmarks,
        "future": rows[0].future,
    }


CLAIM = Claim(
    statement="Nyström attention summarises the tokens by a few averages of tokens (landmarks). Inverting the matrix "
    "of weights between the landmarks brings Nyström attention closer to softmax.",
    short="the inverse brings Nyström closer to softmax",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "nystrom~landmarks~{landmarks}", "step": "3"}),
    experiment="Nyström attention summarises the tokens by m landmarks, which are means of neighbouring tokens. Its "
    "attention matrix is a product of three matrices: the weights of queries on landmarks, the inverse of the m × m "
    "matrix of weights between landmarks, and the weights of landmarks on keys. The product is computed (1) without "
    "the inverse, (2) with an approximate inverse, computed in six iterations, and (3) with the exact inverse. The "
    "matrix error is the size of the difference from softmax's matrix, divided by the size of softmax's matrix. The "
    "verdict on the claim uses one landmark for every four tokens. The figure also shows one for every eight tokens "
    "and one for every two tokens.",
    measure=partial(landmark_rows, forms=FORMS),
    rule="Nyström attention inverts the matrix of weights between its landmarks (averages of tokens), here one for "
    "every four tokens. The matrix error is the relative difference of Nyström's attention matrix from softmax's "
    "matrix. The inverse should lower this error, compared with leaving the inverse out. The claim holds if two "
    "conditions are met. (1) An approximate inverse from six iterations lowers the matrix error in at least "
    "{most}% of the heads. (2) The exact inverse lowers the matrix error in at least {most}% of the heads. The "
    "claim partly holds if only one condition is met.",
    bounds={"most": 75},
    verdict=parts(Condition("iterated_wins", ">=", "most"), Condition("exact_wins", ">=", "most")),
    finding="Without an inverse, each query's weight is spread over the landmarks (averages of tokens) and then over "
    "the keys, which blurs the matrix. An inverse from six iterations lowers the matrix error (difference from "
    "softmax's matrix) in {iterated_wins}% of the heads. The exact inverse lowers this error in {exact_wins}% of the "
    "heads.",
    details="With {landmarks} landmarks, the matrix error (median over heads) is {double} without the inverse, "
    "{iterated} with the inverse from six iterations and {exact} with the exact inverse. An exact inverse amplifies "
    "the errors that averaging causes. Iterations that stop early amplify them less.",
    quantities=(
        Quantity(
            "iterated_wins",
            "heads in which inverting Nyström's landmark matrix in six iterations lowers the matrix error",
            "%",
            of_heads=True,
        ),
        Quantity(
            "exact_wins",
            "heads in which inverting Nyström's landmark matrix exactly lowers the matrix error",
            "%",
            of_heads=True,
        ),
        Quantity(
            "double",
            "matrix error of Nyström attention without the inverse of the landmark matrix, median over heads",
            share=True,
        ),
        Quantity(
            "iterated",
            "matrix error of Nyström attention with the landmark matrix inverted in six iterations, median over heads",
            share=True,
        ),
        Quantity(
            "exact",
            "matrix error of Nyström attention with the exact inverse of the landmark matrix, median over heads",
            share=True,
        ),
        Quantity("landmarks", "number of landmarks (a quarter of the tokens)"),
        FUTURE,
    ),
    figure=FIGURE,
    noncausal_method="Attention over landmarks",
    needs=16,
)
