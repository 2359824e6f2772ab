"""The gradient of causal linear attention needs running sums only, not every state."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from attention_core import registry
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesTask, check_finite
from attention_core.experiments.causal_modes import computed
from attention_core.experiments.claims.claim import Ask, Claim, Figure, Quantity, Verdict, column
from attention_core.experiments.task import Row
from attention_core.variant import Paper

NAMES = {SUMS: "running sums", STATES: "all states"}
WORD = "linear"
SHORTEST = 16
"""Tokens of the shortest length at which bytes are counted."""
MOST = 2**22
"""Numbers in all states of one head whose gradients are compared: 32 MiB in float64, held about four times over."""


def measure(ask: Ask) -> list[Row]:
    """What forward and backward hold at growing lengths, and how far the gradients lie apart on the input."""
    qkv = ask.record()
    d, d_v = qkv.q.shape[-1], qkv.v.shape[-1]
    tokens = max(1, MOST // (d * (d_v + 1)))
    heads = zip(*(x[:, :tokens].double() for x in (qkv.q, qkv.k, qkv.v)), strict=True)
    difference = max(apart(*(gradients(way, *head) for way in NAMES)) for head in heads)
    rows: list[Row] = []
    for task in causal_gradient.tasks(ask.source, d=d, d_v=d_v, word=WORD):
        if isinstance(task, BytesTask) and task.way in NAMES and task.n <= ask.longest:
            (held,) = column(causal_gradient.run(task), "peak_bytes")
            rows.append({"way": NAMES[task.way], "n": task.n, "kib": held / 2**10, "difference": difference})
    return rows


def gradients(way: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """The gradients of half the output's square at q, k and v, ``[n, d]``, ``[n, d]`` and ``[n, d_v]``."""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = computed(registry.from_word(WORD), way)(q, k, v)
    found = torch.autograd.grad(out, (q, k, v), out.detach())
    check_finite(found)
    return found


def apart(own: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The largest difference of any number, over the largest number in all three.

    Over all, as one alone may be zero: where all values are alike, queries and keys change nothing.
    """
    largest = max(float(x.abs().max()) for x in other)
    return max(float((a - b).abs().max()) for a, b in zip(own, other, strict=True)) / (largest or 1.0)


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """What each way holds at the longest length, and how far the gradients are apart."""
    sums, states = (column(rows, "kib", way=name)[-1] for name in NAMES.values())
    return {
        "times": states / sums,
        "difference": max(column(rows, "difference")),
        "sums": sums,
        "states": states,
        "longest": max(column(rows, "n")),
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By what is saved, if the gradients are the same."""
    if numbers["difference"] > bounds["same"] or numbers["times"] <= 1:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["times"] >= bounds["times"] else Verdict.PARTLY


CLAIM = Claim(
    key="running_sums",
    number=19,
    statement="The gradient of causal linear attention needs one running sum forwards and one backwards; the state "
    "after every token need not be kept.",
    source=Paper("Transformers are RNNs", 2020, "https://arxiv.org/abs/2006.16236"),
    experiment="Gradients on this input are computed by running sums and by torch's own differentiation through all "
    "states; the bytes alive at once on the way are counted for one head of this size at growing lengths.",
    rule="Holds where the gradients differ by at most {same} of their largest number and all states hold at least "
    "{times} times as many bytes; partly where they hold only somewhat more.",
    bounds={"same": 1e-6, "times": 4},
    finding="The gradients differ by {difference} of their largest number; at {longest} tokens all states hold "
    "{states} KiB, {times} times what running sums hold ({sums} KiB).",
    quantities=(
        Quantity(name="times", label="bytes of all states over running sums"),
        Quantity(name="difference", label="largest difference of the gradients, as a share", digits=2),
        Quantity(name="sums", label="held by running sums", unit="KiB"),
        Quantity(name="states", label="held by all states", unit="KiB"),
        Quantity(name="longest", label="longest length", unit="tokens"),
    ),
    figure=Figure(
        x="n", y="kib", by="way", x_title="tokens n", y_title="held at once, one head (KiB)",
        log_x=True, log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=SHORTEST,
)  # fmt: skip
