"""Softmax attention is nearly a gated delta rule, without any training."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Ask, Claim, Figure, Numbers, Place, Quantity, Verdict, check_uneven
from attention_core.variants.gated.softmax_gdn import capped, means, tokens

MEAN, FREE, CAPPED = "mean of the values", "delta rule, steps of 1/t", "delta rule, capped"
NEAR = 0.5
"""Relative error up to which a matrix counts as near: a quarter of its squares, summed up, is then wrong at most."""
BEYOND = 1e6
"""Errors of a state that has left all bounds count as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """The relative error of one head's matrix beside causal softmax, and its share of steps beyond the stable range."""

    form: str
    head: int
    error: float
    unstable: float


def measure(ask: Ask) -> Iterator[StepRow]:
    """The errors of all forms, per head, with the future hidden.

    Raises:
        UntestableError: if all tokens weigh the same.
    """
    qkv = ask.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k, causal=True)
    mean = means(torch.eye(qkv.n)).expand_as(exact)
    check_uneven(metrics.relative_error(mean, exact))
    found: dict[str, Tensor] = {
        MEAN: mean,
        FREE: capped(qkv.q, qkv.k, math.inf, causal=True),
        CAPPED: registry.get("softmax_gdn").weights(qkv.q, qkv.k, causal=True),
    }
    k = qkv.k.double()
    steps = tokens(k, k - means(k), math.inf)
    taken = steps.write * steps.k.square().sum(-1, keepdim=True)
    unstable = dict(ask.by_head(100 * (taken > 2 - steps.write).double().mean((-2, -1))))
    for form, matrix in found.items():
        errors = metrics.relative_error(matrix, exact).nan_to_num(BEYOND, BEYOND).clamp(max=BEYOND)
        for head, error in ask.by_head(errors):
            yield StepRow(form=form, head=head, error=error, unstable=unstable[head])


def numbers(rows: Sequence[StepRow]) -> Numbers:
    """Medians over heads, and the shares of heads in which the capped form is near, or nearer than the mean."""
    of = {form: np.array([row.error for row in rows if row.form == form]) for form in (MEAN, FREE, CAPPED)}
    return {
        "near": 100 * float((of[CAPPED] <= NEAR).mean()),
        "nearer": 100 * float((of[CAPPED] < of[MEAN]).mean()),
        **{name: float(np.median(of[form])) for name, form in (("capped", CAPPED), ("free", FREE), ("mean", MEAN))},
        "unstable": float(np.mean([row.unstable for row in rows if row.form == CAPPED])),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Near in most heads; partly where it is at least nearer than the mean in most."""
    if numbers["near"] >= bounds["most"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["nearer"] >= bounds["most"] else Verdict.FAILS


CLAIM = Claim(
    key="softmax_delta_rule",
    number=26,
    statement="Softmax attention is nearly a gated delta rule, without any training: a state of keys off their mean "
    "that fades by 1 − 1/t, added to the mean of the values.",
    source=articles.SOFTMAX_TO_GDN,
    place=Place("matrices", variants=("softmax", "softmax_gdn")),
    experiment="The matrix of the state is compared with softmax's, head by head, the future hidden in both: with "
    "steps of 1/t, and with steps capped so that they take back at most what the key reads. The mean of the values is "
    "beside them, as it is what the state adds to.",
    rule="Holds where the capped form's relative error is at most {near} in {most} % of the heads or more; partly "
    "where it is at least closer than the mean in as many.",
    bounds={"most": 75, "near": NEAR},
    finding="The capped form errs by {capped} in the median head, steps of 1/t by {free}, the mean of the values by "
    "{mean}. It is near in {near} % of the heads and closer than the mean in {nearer} %; {unstable} % of the steps of "
    "1/t leave the stable range.",
    quantities=(
        Quantity("near", "heads where it is near", "%"),
        Quantity("nearer", "heads where it is closer than the mean", "%"),
        Quantity("capped", "error, capped"),
        Quantity("free", "error, steps of 1/t"),
        Quantity("mean", "error of the mean"),
        Quantity("unstable", "steps beyond the stable range", "%"),
    ),
    figure=Figure(
        x="form", y="error", by="form", x_title="form", y_title="relative error beside softmax", kind="bars", log_y=True
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)
