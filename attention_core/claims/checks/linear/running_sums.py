"""Claim: the gradient of causal linear attention needs only running sums over tokens, not the state of every token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule, all_of
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesTask, check_finite
from attention_core.experiments.causal_modes import causal_forward
from attention_core.metrics.fit import fit_power

NAMES = {SUMS: "gradient with running sums", STATES: "gradient with all states stored"}
WORD = "linear"
SHORTEST = 16
"""Shortest length, in tokens, at which bytes are counted."""
HALVINGS = 3
"""Number of times that the head size is halved: bytes are counted over an eightfold range of sizes."""
MAX_STATE_VALUES = 2**22
"""Maximum number of values in one head's states of all tokens, when gradients are compared. In float64 these are
32 MiB, and about four copies are allocated.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientBytesRow:
    """The peak memory of the forward and backward pass of one algorithm at one head size, on random inputs.

    Attributes:
        algorithm: the algorithm of linear attention.
        n: the number of tokens.
        size: the larger one of the sizes of keys and values.
        kib: the peak memory in KiB.
        difference: the largest difference between the gradients of the two algorithms, divided by the largest
            gradient. It is measured on the first tokens of the visitor's input, and all rows have the same value.
    """

    algorithm: str
    n: int
    size: int
    kib: float
    difference: float


def measure(inputs: ExperimentInput) -> Iterator[GradientBytesRow]:
    """Yield the peak memory of forward and backward at growing head sizes, and the difference of the gradients."""
    qkv = inputs.record()
    d, d_v = qkv.q.shape[-1], qkv.v.shape[-1]
    tokens = max(1, MAX_STATE_VALUES // (d * (d_v + 1)))
    heads = zip(*(x[:, :tokens].double() for x in qkv.tensors), strict=True)
    difference = max(max_gradient_difference(*(gradients(algorithm, *head) for algorithm in NAMES)) for head in heads)
    n = max(n for n in causal_gradient.lengths(d, d_v) if n <= inputs.longest)
    for size, size_v in sizes(d, d_v):
        for algorithm, name in NAMES.items():
            task = BytesTask(word=WORD, algorithm=algorithm, n=n, d=size, d_v=size_v)
            kib = causal_gradient.count_bytes(task).peak_bytes / 2**10
            yield GradientBytesRow(algorithm=name, n=n, size=max(size, size_v), kib=kib, difference=difference)


def sizes(d: int, d_v: int) -> list[tuple[int, int]]:
    """Return the head sizes d and d_v, halved together up to ``HALVINGS`` times, in ascending order."""
    return sorted({(max(1, d // 2**i), max(1, d_v // 2**i)) for i in range(HALVINGS + 1)})


def gradients(algorithm: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of half the squared output of an algorithm, one of ``NAMES``, with respect to q, k and v."""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    output = causal_forward(registry.from_word(WORD), algorithm)(q, k, v)
    result = torch.autograd.grad(output, (q, k, v), output.detach())
    check_finite(result)
    return result


def max_gradient_difference(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """Return the largest difference between two triples of gradients, divided by the largest entry of the second.

    All three differences have this divisor, because the gradients of queries and keys may be zero: if all values
    are equal, queries and keys do not change the output.
    """
    largest = max(float(x.abs().max()) for x in second)
    return max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True)) / (largest or 1.0)


def numbers(rows: Sequence[GradientBytesRow]) -> Numbers:
    """Return the memory with states ÷ that with running sums at the head's own size, and its growth with the size.

    Also return the memory with states, and the difference of the gradients.
    """
    sums, states = (values(rows, "kib", algorithm=name) for name in NAMES.values())
    measured = values(rows, "size", algorithm=NAMES[SUMS])
    ratios = [b / a for a, b in zip(sums, states, strict=True)]
    return {
        "times": ratios[-1],
        "size": measured[-1],
        "growth": fit_power(measured, ratios).exponent if measured[0] < measured[-1] else 0.0,
        "smallest": measured[0],
        "difference": rows[0].difference,
        "states": states[-1],
        "n": rows[0].n,
    }


CLAIM = Claim(
    statement="The gradient of causal linear attention needs only two running sums over the tokens. Storing these sums "
    "after every token would take about d² numbers per token (d: head size) instead of about d.",
    short="running sums save memory for the gradient",
    source=registry.variant("linear").source,
    place=Place("causal", {"c_view": "gradient"}),
    experiment="Causal linear attention keeps a state, the running sum of keys times values. The gradients on this "
    "input are computed in two ways: with running sums, which keep only the current state, and by automatic "
    "differentiation, which stores the state after every token. Peak memory is counted for one head, with the "
    "full head size and with a half, a quarter and an eighth of it. The number of tokens is the largest "
    "available power of two, at most 512.",
    rule="The gradients of linear attention are computed with running sums, and with the state (the sum so far) "
    "stored after every token. The claim holds if three conditions are met. (1) The gradients computed in these two "
    "ways differ by at most {same} of the largest gradient entry. (2) Storing all states needs more memory than "
    "running sums. (3) For head size d, the ratio of these two memory sizes grows as dᵖ, with p within {off} of 1. "
    "The claim partly holds if only the third condition is not met.",
    bounds={"same": 1e-6, "off": 0.2},
    verdict=Rule(
        requires=all_of(Condition("difference", "<=", "same"), Condition("times", ">", 1.0)),
        holds=Condition("growth", "<=", "off", around=1.0),
    ),
    finding="With running sums, the gradient of linear attention needs only the current state (the sum of keys times "
    "values) instead of one state per token. Storing all states needs {times}× as much memory as running sums.",
    details="For {n} tokens, storing all states needs {states} KiB per head. The memory ratio is the memory with all "
    "states stored, divided by the memory with running sums. From head size d = {smallest} to d = {size}, it grows "
    "as d to the power {growth}.",
    quantities=(
        Quantity("times", "memory with all states stored ÷ memory with running sums"),
        Quantity("size", "head size of this input"),
        Quantity(
            "growth",
            "growth exponent p of the memory ratio (all states stored ÷ running sums), which grows as dᵖ for head size "
            "d",
        ),
        Quantity("smallest", "smallest measured head size"),
        Quantity(
            "difference",
            "relative difference between the gradients from running sums and from stored states",
            digits=2,
            bound=True,
        ),
        Quantity("states", "peak memory of linear attention's gradient with the state stored after every token", "KiB"),
        Quantity("n", "number of tokens at which memory is counted", "tokens"),
    ),
    figure=Figure(
        x=Axis("size", "head size d", log=True), y=Axis("kib", "peak memory of a head (KiB)", log=True), by="algorithm"
    ),
    needs=SHORTEST,
    measures_lengths=True,
)
