"""Claim: Nyström's inverse brings the double softmax over landmarks closer to softmax."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Limit, Numbers, Place, Quantity, all_of, values
from attention_core.claims.conditions import FUTURE, MEASURED_UNMASKED, check_not_uniform, future

DOUBLE, ITERATED, EXACT, UNIFORM = "double softmax", "six iterations", "exact inverse", "uniform attention"
FORMS = {DOUBLE: "landmark", ITERATED: "nystrom", EXACT: "nystrom~inverse~exact"}
SHARES, JUDGED = (8, 4, 2), 4
"""Tokens per landmark: the values measured, and the value that the claim is judged at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseRow:
    """The relative error of one form of a head's matrix with one landmark per ``share`` tokens, and ``FUTURE``."""

    share: int
    landmarks: int
    future: float
    form: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[InverseRow]:
    """Yield the relative error of the matrix per head, for all forms with the same landmarks.

    Raises:
        UntestableError: if all tokens have the same weight.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k)
    uniform, hidden = metrics.uniform_error(exact), future(qkv)
    check_not_uniform(uniform)
    for share in SHARES:
        row = {"share": share, "landmarks": qkv.n // share, "future": hidden}
        for form, word in FORMS.items():
            matrix = registry.from_word(f"{word}~landmarks~{qkv.n // share}").weights(qkv.q, qkv.k)
            yield from inputs.head_rows(InverseRow, **row, form=form, error=metrics.relative_error(matrix, exact))
        yield from inputs.head_rows(InverseRow, **row, form=UNIFORM, error=uniform)


def numbers(rows: Sequence[InverseRow]) -> Numbers:
    """Return medians over heads, and the shares of heads where each inverse is closer than the double softmax."""
    judged = [row for row in rows if row.share == JUDGED]
    forms = (DOUBLE, ITERATED, EXACT, UNIFORM)
    double, iterated, exact, uniform = (np.array(values(judged, "error", form=form)) for form in forms)
    return {
        "iterated_wins": 100 * float((iterated < double).mean()),
        "exact_wins": 100 * float((exact < double).mean()),
        "double": float(np.median(double)),
        "iterated": float(np.median(iterated)),
        "exact": float(np.median(exact)),
        "uniform": float(np.median(uniform)),
        "landmarks": judged[0].landmarks,
        "future": judged[0].future,
    }


CLAIM = Claim(
    measure,
    numbers,
    all_of(Limit("iterated_wins", "most", least=True), Limit("exact_wins", "most", least=True)),
    statement="With one landmark for every four tokens, inserting Nyström's inverse between the two softmaxes over "
    "landmarks brings their product closer to softmax.",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "nystrom", "step": "3"}),
    experiment="The double softmax over landmarks is compared with softmax's matrix in every head. It is computed in "
    "three forms: without an inverse, with an inverse from six iterations, and with the exact inverse. For n tokens, "
    "the figure also shows n/8 and n/2 landmarks.",
    rule="Two conditions: (1) The inverse from six iterations, as in the paper, lowers the error in at least {most}% "
    "of the heads. (2) The exact inverse, as in the article, lowers the error in at least {most}% of the heads. The "
    "claim holds if both conditions are met. It holds partly if only one is met.",
    bounds={"most": 75},
    finding="With {landmarks} landmarks and no inverse, the double softmax has a median error of {double}. An "
    "inverse from six iterations has a median error of {iterated} and lowers the error in {iterated_wins}% of the "
    "heads. The exact inverse has a median error of {exact} and lowers the error in {exact_wins}%.",
    quantities=(
        Quantity("iterated_wins", "heads closer with six iterations", "%"),
        Quantity("exact_wins", "heads closer with the exact inverse", "%"),
        Quantity("double", "error of the double softmax"),
        Quantity("iterated", "error with six iterations"),
        Quantity("exact", "error with the exact inverse"),
        Quantity("uniform", "error of uniform attention"),
        Quantity("landmarks", "landmarks, n/4"),
        FUTURE,
    ),
    figure=Figure(x="landmarks", y="error", by="form", x_title="landmarks m", y_title="relative error", log="xy"),
    notes=(MEASURED_UNMASKED,),
    noncausal_method="Attention over landmarks",
    needs=16,
)
