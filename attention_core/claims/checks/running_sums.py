"""Claim: the gradient of causal linear attention needs only running sums, not the state after every token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import Case, Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesTask, check_finite
from attention_core.experiments.causal_modes import causal_forward
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

NAMES = {SUMS: "running sums", STATES: "all states"}
WORD = "linear"
SHORTEST = 16
"""Shortest length, in tokens, at which bytes are counted."""
HALVINGS = 3
"""How often the head size is halved: bytes are counted over an eightfold range of sizes."""
MOST = 2**22
"""Maximum number of values in all states of one compared head: 32 MiB in float64, allocated about four times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientBytesRow:
    """The peak memory of one way's forward and backward pass at one head size, max(d, d_v).

    ``difference`` is the largest difference of both ways' gradients on the input itself, equal in every row.
    """

    way: str
    n: int
    size: int
    kib: float
    difference: float


def measure(inputs: ExperimentInput) -> Iterator[GradientBytesRow]:
    """Yield the peak memory of forward and backward at growing head sizes, and the difference of the gradients."""
    qkv = inputs.record()
    d, d_v = qkv.q.shape[-1], qkv.v.shape[-1]
    tokens = max(1, MOST // (d * (d_v + 1)))
    heads = zip(*(x[:, :tokens].double() for x in qkv.tensors), strict=True)
    difference = max(max_gradient_difference(*(gradients(way, *head) for way in NAMES)) for head in heads)
    n = max(n for n in causal_gradient.lengths(d, d_v) if n <= inputs.longest)
    for size, size_v in sizes(d, d_v):
        for way, name in NAMES.items():
            task = BytesTask(word=WORD, way=way, n=n, d=size, d_v=size_v)
            kib = causal_gradient.count_bytes(task).peak_bytes / 2**10
            yield GradientBytesRow(way=name, n=n, size=max(size, size_v), kib=kib, difference=difference)


def sizes(d: int, d_v: int) -> list[tuple[int, int]]:
    """Return the head sizes d and d_v, halved together up to ``HALVINGS`` times, in ascending order."""
    return sorted({(max(1, d // 2**i), max(1, d_v // 2**i)) for i in range(HALVINGS + 1)})


def gradients(way: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of half the squared output at q, k and v: ``[n, d]``, ``[n, d]`` and ``[n, d_v]``."""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = causal_forward(registry.from_word(WORD), way)(q, k, v)
    found = torch.autograd.grad(out, (q, k, v), out.detach())
    check_finite(found)
    return found


def max_gradient_difference(own: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """Return the largest difference of any gradient entry, divided by the largest entry of all three gradients.

    One gradient alone may be zero: if all values are equal, queries and keys have no effect.
    """
    largest = max(float(x.abs().max()) for x in other)
    return max(float((a - b).abs().max()) for a, b in zip(own, other, strict=True)) / (largest or 1.0)


def numbers(rows: Sequence[GradientBytesRow]) -> Numbers:
    """Return the memory of both ways at the head's own size, the growth of their ratio, and the gradient difference."""
    sums, states = ([row for row in rows if row.way == name] for name in NAMES.values())
    measured, ratios = [row.size for row in sums], [b.kib / a.kib for a, b in zip(sums, states, strict=True)]
    return {
        "times": ratios[-1],
        "size": measured[-1],
        "growth": fit_power(measured, ratios).exponent if measured[0] < measured[-1] else 0.0,
        "smallest": measured[0],
        "difference": rows[0].difference,
        "sums": sums[-1].kib,
        "states": states[-1].kib,
        "n": rows[0].n,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by equal gradients and less memory; ``PARTLY`` if the ratio does not grow in proportion to head size."""
    if numbers["difference"] > bounds["same"] or numbers["times"] <= 1:
        return Verdict.FAILS
    return Verdict.HOLDS if abs(numbers["growth"] - 1) <= bounds["off"] else Verdict.PARTLY


CLAIM = Claim(
    key="running_sums",
    number=19,
    statement="The gradient of causal linear attention needs one running sum forwards and one backwards; keeping the "
    "state after every token instead would multiply the memory by the size of a head.",
    source=Paper(
        "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
        2020,
        "https://arxiv.org/abs/2006.16236",
    ),
    place=Place("causal", {"c_view": "gradient"}),
    experiment="Gradients on this input are computed by running sums and by torch's own differentiation through all "
    "states; the bytes alive at once on the way are counted for one head of this size, of half of it, a quarter and an "
    "eighth, at the greatest power of two of tokens that the input can be had at, 512 at most.",
    rule="Holds where the gradients differ by at most {same} of their largest number, all states hold more bytes than "
    "running sums, and how many times as many grows like the head's size to a power within {off} of one, whatever the "
    "constant before it; partly where only the power is not so.",
    bounds={"same": 1e-6, "off": 0.2},
    finding="The gradients differ by at most {difference} of their largest number; at {n} tokens and a head of {size} "
    "all states hold {states} KiB, {times}× what running sums hold ({sums} KiB); from heads of {smallest} on this "
    "ratio grows like their size to the power {growth}.",
    cases=(
        Case(
            finding="The gradients differ by at most {difference} of their largest number; at {n} tokens and a head of "
            "{size}, which has no half, all states hold {states} KiB, {times}× what running sums hold ({sums} "
            "KiB).",
            applies=lambda numbers: numbers["smallest"] == numbers["size"],
        ),
    ),
    quantities=(
        Quantity("times", "bytes of all states over running sums"),
        Quantity("size", "size of the head"),
        Quantity("growth", "exponent of the ratio's growth with the size"),
        Quantity("smallest", "smallest size"),
        Quantity("difference", "largest difference of the gradients, as a share", digits=2, bound=True),
        Quantity("sums", "held by running sums", "KiB"),
        Quantity("states", "held by all states", "KiB"),
        Quantity("n", "length", "tokens"),
    ),
    figure=Figure(
        x="size",
        y="kib",
        by="way",
        x_title="size of a head d",
        y_title="held at once, one head (KiB)",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=SHORTEST,
    measures_lengths=True,
)
