"""Claim: linear attention with the kernel 1 + cos(q, k) is closer to softmax than with other simple kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import check_not_uniform
from attention_core.claims.rule import Condition, Measured, Numbers, Rule
from attention_core.experiments.error import uniform_weights

COSINE, UNIFORM = "1 + cos(q, k)", "equal weights (no kernel)"
KERNELS = {
    COSINE: "cosine",
    "elu + 1 features": "linear",
    "relu features": "linear~feature_map~relu",
    "softmax features": "linear~feature_map~softmax",
    "exp features": "linear~feature_map~exp",
    "double softmax": "efficient",
}
"""Kernels with d or d + 1 features and no settings, which the article compares with 1 + cos. Later kernels that
estimate the exponential, such as Performer's, are closer only with many more features."""
CHANCE = round(100 / len(KERNELS))
"""Per cent of the heads in which each kernel would be the closest if the closest kernel were drawn at random."""
MATRIX, OUTPUT = "attention matrix", "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """The relative error of one kernel's attention matrix or output (``of``) in one head, compared with softmax."""

    kernel: str
    of: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[KernelRow]:
    """Yield the relative error of every kernel's matrix and output per head, causal if the input is causal."""
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k, causal=qkv.causal).double()
    check_not_uniform(metrics.uniform_error(exact, causal=qkv.causal))
    v = qkv.v.double()
    for kernel in (*KERNELS, UNIFORM):
        if kernel == UNIFORM:
            weights = uniform_weights(qkv.n, causal=qkv.causal).expand_as(exact)
        else:
            weights = registry.from_word(KERNELS[kernel]).weights(qkv.q, qkv.k, causal=qkv.causal).double()
        yield from inputs.head_rows(KernelRow, kernel=kernel, of=MATRIX, error=metrics.relative_error(weights, exact))
        errors = metrics.relative_error(weights @ v, exact @ v)
        yield from inputs.head_rows(KernelRow, kernel=kernel, of=OUTPUT, error=errors)


def numbers(rows: Sequence[KernelRow]) -> Numbers:
    """Return how often the matrix of 1 + cos is closer than that of another kernel, and than those of all others.

    Also return the median errors of 1 + cos, of the best other kernel and of uniform attention.
    """
    cosine, *rest, uniform = (np.array(values(rows, "error", kernel=each, of=MATRIX)) for each in (*KERNELS, UNIFORM))
    others = np.stack(rest)
    return {
        "duels": 100 * float((cosine < others).mean()),
        "heads": 100 * float((cosine < others).all(0).mean()),
        "cosine": float(np.median(cosine)),
        "best": float(np.median(others, axis=1).min()),
        "uniform": float(np.median(uniform)),
    }


CLAIM = Claim(
    statement="Linear attention replaces softmax's exponential by a simpler function of query and key (kernel). "
    "Among the simple kernels, 1 + cos(q, k) comes closest to softmax.",
    short="the kernel 1 + cos is closest to softmax",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("matrices", variants=("softmax", "cosine", "linear", "efficient")),
    experiment="Linear attention replaces softmax's exponential with another function of query and key, which is "
    "called a kernel. With the kernel 1 + cos(q, k), a key's weight is proportional to 1 plus the cosine of the angle "
    "between query and key. In every head, uniform attention (equal weights) and six simple kernels are compared with "
    "softmax. One of them, double softmax, also normalises the keys over all tokens. Matrix error and output error "
    "are the relative differences from softmax's matrix and output. The author of the article that this claim comes "
    "from later found that 1 + cos(q, k) works poorly.",
    rule="A kernel is a function of query and key that replaces softmax's exponential. Its matrix error is the "
    "relative difference of its attention matrix from softmax's matrix. The claim holds if two conditions are met. "
    "(1) In at least {heads}% of the heads, 1 + cos(q, k) has the smallest matrix error of six kernels. (2) The median "
    "matrix error over heads is smaller for 1 + cos(q, k) than for uniform attention, which gives all keys equal "
    "weights. The claim partly holds if the second condition is met and 1 + cos(q, k) has the smallest matrix error in "
    "more than {chance}% of the heads. A kernel picked at random would have the smallest error in about {chance}% of "
    "the heads.",
    bounds={"heads": 50, "chance": CHANCE},
    verdict=Rule(
        requires=Condition("cosine", "<", Measured("uniform")),
        holds=Condition("heads", ">=", "heads"),
        partly=Condition("heads", ">", "chance"),
    ),
    finding="The matrix error (difference from softmax's matrix, median over heads) is {cosine} for 1 + cos(q, k), "
    "{best} for the best other kernel and {uniform} for equal weights. The kernel 1 + cos(q, k) is the closest of six "
    "kernels to softmax in {heads}% of the heads.",
    details="This kernel is at most 2, but the exponential that it replaces has no upper limit. Compared with each of "
    "the five other kernels, 1 + cos(q, k) has the smaller matrix error in {duels}% of the comparisons.",
    quantities=(
        Quantity("heads", "heads in which the kernel 1 + cos(q, k) is closest to softmax", "%", of_heads=True),
        Quantity(
            "duels",
            "share of pairwise comparisons in which 1 + cos(q, k) has a smaller matrix error than the other kernel",
            "%",
        ),
        Quantity("cosine", "matrix error of the kernel 1 + cos(q, k), median over heads", share=True),
        Quantity("best", "matrix error of the best kernel other than 1 + cos(q, k), median over heads", share=True),
        Quantity("uniform", "matrix error of uniform attention (equal weights), median over heads", share=True),
    ),
    figure=Figure(
        x=Axis("kernel", "kernel of linear attention"),
        y=Axis("error", "error relative to softmax (%)"),
        by="of",
        kind="bars",
        subject=COSINE,
        main=(MATRIX,),
        main_title="matrix error (%)",
        percent=True,
    ),
)
