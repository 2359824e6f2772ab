"""Claim: the kernel 1 + cos is closer to softmax than other kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_core import articles, metrics, registry
from attention_core.claims.claim import (
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    check_not_uniform,
)
from attention_core.experiments.error import uniform

COSINE, UNIFORM = "1 + cos", "uniform attention"
KERNELS = {
    COSINE: "cosine",
    "elu + 1": "linear",
    "relu": "linear~feature_map~relu",
    "softmax": "linear~feature_map~softmax",
    "exp": "linear~feature_map~exp",
    "double softmax": "efficient",
}
"""Kernels with d or d + 1 features and no settings, which the article compares with 1 + cos. Later kernels that
estimate the exponential, such as Performer's, are closer only with many more features."""
CHANCE = round(100 / len(KERNELS))
"""Per cent of the heads in which each kernel would be the closest if the closest kernel were drawn at random."""
MATRIX, OUTPUT = "matrix", "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """The relative error of one kernel on one head; ``of`` is ``MATRIX`` or ``OUTPUT``."""

    kernel: str
    of: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[KernelRow]:
    """Yield the relative error of every kernel's matrix and output per head, causal if the input is causal.

    Raises:
        UntestableError: if all tokens have the same weight.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k, causal=qkv.causal).double()
    check_not_uniform(metrics.uniform_error(exact, causal=qkv.causal))
    v = qkv.v.double()
    for kernel in (*KERNELS, UNIFORM):
        if kernel == UNIFORM:
            own = uniform(qkv.n, causal=qkv.causal).expand_as(exact)
        else:
            own = registry.from_word(KERNELS[kernel]).weights(qkv.q, qkv.k, causal=qkv.causal).double()
        errors = {MATRIX: metrics.relative_error(own, exact), OUTPUT: metrics.relative_error(own @ v, exact @ v)}
        for of, values in errors.items():
            for head, error in inputs.by_head(values):
                yield KernelRow(kernel=kernel, of=of, head=head, error=error)


def numbers(rows: Sequence[KernelRow]) -> Numbers:
    """Return how often 1 + cos has the closest matrix, and the median errors, with uniform attention for comparison."""
    errors = {
        kernel: np.array([row.error for row in rows if row.kernel == kernel and row.of == MATRIX])
        for kernel in (*KERNELS, UNIFORM)
    }
    cosine, others = errors[COSINE], np.stack([errors[kernel] for kernel in KERNELS if kernel != COSINE])
    return {
        "duels": 100 * float((cosine < others).mean()),
        "heads": 100 * float((cosine < others).all(0).mean()),
        "cosine": float(np.median(cosine)),
        "best": float(np.median(others, axis=1).min()),
        "uniform": float(np.median(errors[UNIFORM])),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the share of heads where 1 + cos is closest; it fails if it is no closer than uniform attention."""
    if numbers["cosine"] >= numbers["uniform"] or numbers["heads"] <= bounds["chance"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["heads"] >= bounds["heads"] else Verdict.PARTLY


CLAIM = Claim(
    key="cosine_closest",
    number=4,
    statement="As the exponential's first-order expansion, 1 + cos is closer to softmax than the other kernels of "
    "linear attention (its author later found that it works poorly).",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("matrices", variants=("softmax", "cosine", "linear", "efficient")),
    experiment="The attention matrices of 1 + cos and of the other kernels without settings (linear attention's four "
    "feature maps and double softmax) are compared with softmax's, head by head, and so is uniform attention.",
    rule="Holds where the matrix of 1 + cos is the closest of all to softmax's in {heads}% of the heads or more, "
    "partly where in more than {chance}%, which is what drawing one of the six kernels by lot would give; never where "
    "that of uniform attention is as close.",
    bounds={"heads": 50, "chance": CHANCE},
    finding="1 + cos is the closest of the six kernels to softmax in {heads}% of the heads, and the closer one in "
    "{duels}% of its pairings with another; its matrix errs by {cosine} in the middle head, the best other kernel's "
    "by {best} and that of uniform attention by {uniform}.",
    quantities=(
        Quantity("heads", "heads where it is the closest", "%"),
        Quantity("duels", "pairings it wins", "%"),
        Quantity("cosine", "error of 1 + cos, median"),
        Quantity("best", "error of the best other kernel"),
        Quantity("uniform", "error of uniform attention"),
    ),
    figure=Figure(
        x="kernel", y="error", by="of", x_title="kernel", y_title="relative error beside softmax", kind="bars"
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
)
