"""Claim: the kernel 1 + cos is closer to softmax than other kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict, values
from attention_core.claims.conditions import check_not_uniform
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
        yield from inputs.head_rows(KernelRow, kernel=kernel, of=MATRIX, error=metrics.relative_error(own, exact))
        errors = metrics.relative_error(own @ v, exact @ v)
        yield from inputs.head_rows(KernelRow, kernel=kernel, of=OUTPUT, error=errors)


def numbers(rows: Sequence[KernelRow]) -> Numbers:
    """Return how often 1 + cos has the closest matrix, and the median errors, with uniform attention for comparison."""
    cosine, *rest, flat = (np.array(values(rows, "error", kernel=each, of=MATRIX)) for each in (*KERNELS, UNIFORM))
    others = np.stack(rest)
    return {
        "duels": 100 * float((cosine < others).mean()),
        "heads": 100 * float((cosine < others).all(0).mean()),
        "cosine": float(np.median(cosine)),
        "best": float(np.median(others, axis=1).min()),
        "uniform": float(np.median(flat)),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the share of heads where 1 + cos is closest; it fails if it is no closer than uniform attention."""
    if numbers["cosine"] >= numbers["uniform"] or numbers["heads"] <= bounds["chance"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["heads"] >= bounds["heads"] else Verdict.PARTLY


CLAIM = Claim(
    measure,
    numbers,
    verdict,
    statement="The kernel 1 + cos, the exponential's first-order expansion, is closer to softmax than other kernels "
    "of linear attention.",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("matrices", variants=("softmax", "cosine", "linear", "efficient")),
    experiment="The kernel 1 + cos gives weights in proportion to 1 plus the cosine of query and key. In every head, "
    "its matrix is compared with softmax's matrix. So are the matrices of five other kernels without settings, and "
    "of uniform attention. The article's author later found that 1 + cos works poorly.",
    rule="The claim holds if, of the six kernels, 1 + cos gives the matrix closest to softmax's in at least {heads}% "
    "of the heads. It holds partly if 1 + cos is the closest in more than {chance}% of the heads, which is the "
    "chance level for six kernels. In both cases, the median error of 1 + cos must also be below that of uniform "
    "attention.",
    bounds={"heads": 50, "chance": CHANCE},
    finding="Among six kernels, 1 + cos is the closest to softmax in {heads}% of the heads. In {duels}% of all "
    "comparisons with a single other kernel, 1 + cos is closer. The median error is {cosine} for 1 + cos, {best} for "
    "the best other kernel and {uniform} for uniform attention.",
    quantities=(
        Quantity("heads", "heads where it is the closest", "%"),
        Quantity("duels", "comparisons won", "%"),
        Quantity("cosine", "error of 1 + cos"),
        Quantity("best", "error of the best other kernel"),
        Quantity("uniform", "error of uniform attention"),
    ),
    figure=Figure(x="kernel", y="error", by="of", x_title="kernel", y_title="relative error", kind="bars"),
)
