"""Claim: the mean of the values plus a term from the delta rule nearly equals softmax's output, without training.

The query reads this term from a matrix that the delta rule updates at every token.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import check_not_uniform
from attention_core.claims.rule import Condition, Numbers, parts
from attention_core.variants.gated.softmax_gdn import capped_weights, rule_inputs, running_means

MEAN, FIRST, FREE = "mean of the values", "Taylor expansion of softmax", "delta rule, strength 1/t at token t"
CAPPED = "delta rule, limited strength"
NEAR = 0.5
"""Largest relative error at which a matrix counts as close to softmax."""
MAX_ERROR = 1e6
"""Largest error reported; errors of an overflowing state are set to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """The relative error of the matrix of one approximation (``form``), compared with causal softmax, in one head.

    ``unstable`` is the percentage of tokens at which an update with strength 1/t is unstable.
    """

    form: str
    head: int
    error: float
    unstable: float


def measure(inputs: ExperimentInput) -> Iterator[StepRow]:
    """Yield the errors of all approximations per head, with a causal mask."""
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k, causal=True)
    mean = running_means(torch.eye(qkv.n)).expand_as(exact)
    check_not_uniform(metrics.relative_error(mean, exact))
    matrices: dict[str, Tensor] = {
        MEAN: mean,
        FIRST: registry.get("centred_taylor", order=1).weights(qkv.q, qkv.k, causal=True),
        FREE: capped_weights(qkv.q, qkv.k, math.inf, causal=True),
        CAPPED: registry.get("softmax_gdn").weights(qkv.q, qkv.k, causal=True),
    }
    k = qkv.k.double()
    updates = rule_inputs(k, k - running_means(k), math.inf)
    erased = updates.write_strength * updates.k.square().sum(-1, keepdim=True)
    unstable = (100 * (erased > 2 - updates.write_strength).double().mean((-2, -1))).tolist()
    for form, matrix in matrices.items():
        errors = metrics.relative_error(matrix, exact).nan_to_num(MAX_ERROR, MAX_ERROR).clamp(max=MAX_ERROR)
        yield from inputs.head_rows(StepRow, form=form, error=errors, unstable=unstable)


def numbers(rows: Sequence[StepRow]) -> Numbers:
    """Return the median error of each approximation, and percentages of heads and tokens.

    The error is at most ``NEAR`` in ``near`` per cent of heads with strength 1/t, in ``capped_near`` with a limited
    strength. In ``closer`` per cent, strength 1/t has a smaller error than both the mean and the Taylor expansion.
    """
    mean, first, free, limited = (np.array(values(rows, "error", form=form)) for form in (MEAN, FIRST, FREE, CAPPED))
    return {
        "near": 100 * float((free <= NEAR).mean()),
        "closer": 100 * float((free < np.minimum(first, mean)).mean()),
        "free": float(np.median(free)),
        "first": float(np.median(first)),
        "mean": float(np.median(mean)),
        "capped": float(np.median(limited)),
        "capped_near": 100 * float((limited <= NEAR).mean()),
        "unstable": float(np.mean(values(rows, "unstable", form=FREE))),
    }


CLAIM = Claim(
    statement="Without any training, the mean of the values so far plus a correction comes close to softmax's output. "
    "The query reads this correction from one matrix, which the delta rule updates at every token.",
    short="an untrained delta rule is close to softmax",
    source=articles.SOFTMAX_TO_GDN,
    place=Place("matrices", {"causal": "1"}, variants=("softmax", "softmax_gdn", "centred_taylor~order~1")),
    experiment="With a causal mask, three methods are compared with softmax attention in every head: (1) a delta "
    "rule, (2) the first-order Taylor expansion of softmax, from which this rule is derived, and (3) the mean of the "
    "values so far. The delta rule stores values in a matrix. At token t, it multiplies this matrix by 1 − 1/t and "
    "adds an update of strength 1/t, computed from the matrix before the multiplication. The matrix error is the size "
    "of the difference from softmax's attention matrix, divided by the size of softmax's matrix. The app also shows a "
    "delta rule with limited strength, whose stored matrix stays stable. This rule does not affect the verdict.",
    rule="The delta rule stores values under keys in a matrix. Here, token t updates this matrix with strength 1/t. "
    "The matrix error is the relative difference of an attention matrix from softmax's matrix. The claim holds "
    "if two conditions are met. (1) The matrix error of the delta rule is at most {near}% in at least {most}% of "
    "the heads. (2) In at least {most}% of the heads, this error is smaller than the errors of two baselines: "
    "the first-order Taylor expansion of softmax, and equal weights. The claim partly holds if only one "
    "condition is met.",
    bounds={"most": 75, "near": 100 * NEAR},
    verdict=parts(Condition("near", ">=", "most"), Condition("closer", ">=", "most")),
    finding="The delta rule replaces all earlier keys and values by one matrix of fixed size. Its matrix error "
    "(difference from softmax's matrix, median over heads) is {free}; equal weights give {mean}. Its error is "
    "smaller than those of a first-order Taylor expansion of softmax and of equal weights in {closer}% of the heads.",
    details="The matrix error is {first} for the first-order Taylor expansion of softmax (median over heads). In "
    "{unstable}% of its updates, the delta rule with strength 1/t at token t multiplies the value stored under the "
    "token's key by a factor below −1. Stored values can then become very large. If the strength is limited to "
    "prevent this, the matrix error is {capped} (median over heads), and at most 50% in {capped_near}% of the heads.",
    quantities=(
        Quantity("near", "heads in which the delta rule's matrix error is at most 50%", "%", of_heads=True),
        Quantity("closer", "heads in which the delta rule is closest to softmax (of 3 methods)", "%", of_heads=True),
        Quantity(
            "free", "matrix error of the delta rule with update strength 1/t at token t, median over heads", share=True
        ),
        Quantity("first", "matrix error of softmax's first-order Taylor expansion, median over heads", share=True),
        Quantity("mean", "matrix error of equal weights (mean of the values), median over heads", share=True),
        Quantity(
            "capped", "matrix error of the delta rule with limited update strength, median over heads", share=True
        ),
        Quantity(
            "capped_near",
            "heads in which the matrix error is at most 50% if the update strength is limited",
            "%",
            of_heads=True,
        ),
        Quantity(
            "unstable",
            "share of updates in which the delta rule, with strength 1/t at token t, multiplies the value stored "
            "under the token's key by a factor below −1",
            "%",
        ),
    ),
    figure=Figure(
        x=Axis("form", "method"), y=Axis("error", "matrix error (%)", log=True), by="form", kind="bars", percent=True
    ),
    needs=8,
)
