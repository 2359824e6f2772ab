"""ReLU to other powers: what the power does to a row that no factor on its logits can do."""

from dataclasses import dataclass

from torch import Tensor

from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.entropy import entropy
from attention_core.ops.softmax.masked import rows_over_sum

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""From the plain ReLU through the square to nearly one key per row."""
FACTOR = 2.0
"""What the logits are multiplied by to see whether a row notices."""


@dataclass(frozen=True, kw_only=True)
class PowerTask:
    """One power on one source.

    Attributes:
        source: what the queries and keys come from.
        n: tokens.
        power: p > 0.
        causal: whether the future is hidden.
    """

    source: Source
    n: int
    power: float
    causal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRow:
    """One head under one power.

    Attributes:
        power: the power.
        head: the head.
        entropy: nats, mean over queries; a row without a positive logit has 0.
        change: the largest difference that ``FACTOR`` times the logits makes to a share.
    """

    power: float
    head: int
    entropy: float
    change: float


def tasks(source: Source, *, n: int, causal: bool = False) -> tuple[PowerTask, ...]:
    """Every power in turn, ascending."""
    return tuple(PowerTask(source=source, n=n, power=power, causal=causal) for power in POWERS)


def run(task: PowerTask, *, load: Load = load) -> tuple[PowerRow, ...]:
    """Measure the shares under one power, head by head.

    Raises:
        LabError: if the source cannot be read at this length.
    """
    qkv = task.source.at_length(task.n, task.n, load)
    plain, steered = (shares(factor * qkv.q, qkv.k, task.power, causal=task.causal) for factor in (1.0, FACTOR))
    change = (steered - plain).abs().amax((-2, -1))
    return tuple(
        PowerRow(power=task.power, head=head, entropy=float(nats), change=float(changed))
        for head, (nats, changed) in enumerate(zip(entropy(plain).mean(-1), change, strict=True))
    )


def shares(q: Tensor, k: Tensor, power: float, *, causal: bool) -> Tensor:
    """``relu(q_i · k_j / √d)^p`` over its row's sum, ``[..., n, n]`` float64; a row without a positive logit is zero.

    As ``x^p = exp(p log x)``, this is softmax of the positive logits' logarithms with p for the inverse temperature.

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        power: p > 0.
        causal: whether query i sees keys 0..i only.
    """
    logits = (q.double() @ k.double().mT).relu_()
    if causal:
        logits.tril_()
    largest = logits.amax(-1, keepdim=True)  # first, so that no power leaves the range of numbers
    return rows_over_sum((logits / largest.masked_fill(largest == 0, 1.0)).pow(power))
