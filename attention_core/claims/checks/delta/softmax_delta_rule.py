"""Claim: softmax attention is nearly a gated delta rule, without any training."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Case, Figure, Limit, Numbers, Place, Quantity, all_of, values
from attention_core.claims.conditions import check_not_uniform
from attention_core.variants.gated.softmax_gdn import capped, means, tokens

MEAN, FIRST, FREE = "mean of the values", "first-order series", "delta rule, steps of 1/t"
CAPPED = "delta rule, capped steps"
NEAR = 0.5
"""Largest relative error at which a matrix counts as close to softmax."""
BEYOND = 1e6
"""Largest error reported; errors of an overflowing state are set to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """The relative error of one form in one head against causal softmax, and the share of unstable steps of 1/t."""

    form: str
    head: int
    error: float
    unstable: float


def measure(inputs: ExperimentInput) -> Iterator[StepRow]:
    """Yield the errors of all forms per head, with a causal mask.

    Raises:
        UntestableError: if all tokens have the same weight.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k, causal=True)
    mean = means(torch.eye(qkv.n)).expand_as(exact)
    check_not_uniform(metrics.relative_error(mean, exact))
    found: dict[str, Tensor] = {
        MEAN: mean,
        FIRST: registry.get("centred_taylor", order=1).weights(qkv.q, qkv.k, causal=True),
        FREE: capped(qkv.q, qkv.k, math.inf, causal=True),
        CAPPED: registry.get("softmax_gdn").weights(qkv.q, qkv.k, causal=True),
    }
    k = qkv.k.double()
    steps = tokens(k, k - means(k), math.inf)
    taken = steps.write * steps.k.square().sum(-1, keepdim=True)
    unstable = (100 * (taken > 2 - steps.write).double().mean((-2, -1))).tolist()
    for form, matrix in found.items():
        errors = metrics.relative_error(matrix, exact).nan_to_num(BEYOND, BEYOND).clamp(max=BEYOND)
        yield from inputs.head_rows(StepRow, form=form, error=errors, unstable=unstable)


def numbers(rows: Sequence[StepRow]) -> Numbers:
    """Return median errors, and the shares of heads where steps of 1/t are near softmax or closer than the others."""
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
    measure,
    numbers,
    all_of(Limit("near", "most", least=True), Limit("closer", "most", least=True)),
    statement="Without training, softmax attention is close to a gated delta rule: the mean of the values plus a "
    "state of centred keys, which is multiplied by 1 − 1/t at token t.",
    source=articles.SOFTMAX_TO_GDN,
    place=Place("matrices", variants=("softmax", "softmax_gdn", "centred_taylor~order~1")),
    experiment="In every head, three methods are compared with softmax attention, all with a causal mask: (1) the "
    "article's delta rule, with steps of 1/t at token t; (2) the first-order series of softmax, from which the delta "
    "rule is derived; (3) the mean of the values. The app also shows steps that are capped to keep the state stable. "
    "Capped steps do not affect the verdict.",
    rule="Two conditions: (1) The delta rule with steps of 1/t has a relative error of at most {near} in at least "
    "{most}% of the heads. (2) This error is smaller than the errors of the series and of the mean in at least "
    "{most}% of the heads. The claim holds if both conditions are met. It holds partly if only one is met.",
    bounds={"most": 75, "near": NEAR},
    finding="In the median head, the delta rule with steps of 1/t has an error of {free}. The error of the "
    "first-order series is {first}, and the error of the mean of the values is {mean}. The delta rule's error is at "
    "most 0.5 in {near}% of the heads, and smaller than the other two errors in {closer}%.",
    notes=(
        Case(
            finding="{unstable}% of the steps of 1/t are outside the stable range. With capped steps, the error is "
            "{capped} in the median head, and at most 0.5 in {capped_near}% of the heads.",
            applies=lambda numbers: numbers["unstable"] > 0,
        ),
    ),
    quantities=(
        Quantity("near", "heads with an error of at most 0.5", "%"),
        Quantity("closer", "heads where the delta rule beats series and mean", "%"),
        Quantity("free", "error, steps of 1/t"),
        Quantity("first", "error of the first-order series"),
        Quantity("mean", "error, mean of the values"),
        Quantity("capped", "error, capped steps"),
        Quantity("capped_near", "heads with an error of at most 0.5, capped steps", "%"),
        Quantity("unstable", "steps of 1/t outside the stable range", "%"),
    ),
    figure=Figure(x="form", y="error", by="form", x_title="form", y_title="relative error", kind="bars", log="y"),
    needs=8,
)
