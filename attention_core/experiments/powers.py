"""Attention with powers of ReLU: the power changes how concentrated a row is, and a factor on the logits does not."""

from dataclasses import dataclass

from torch import Tensor

from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.entropy import entropy
from attention_core.ops.softmax.masked import rows_over_sum

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""From plain ReLU and squared ReLU to almost one key per row."""
FACTOR = 2.0
"""Factor on the logits, used to check that the rows do not change."""


@dataclass(frozen=True, kw_only=True)
class PowerTask:
    """A task that measures one power on one source.

    Attributes:
        source: source of the queries and keys.
        n: tokens.
        power: p > 0.
        causal: whether a causal mask is used.
    """

    source: Source
    n: int
    power: float
    causal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRow:
    """The measurements of one head with one power.

    Attributes:
        power: the power.
        head: the head.
        entropy: nats, mean over queries; 0 for a row without a positive logit.
        change: largest difference of a share when the logits are multiplied by ``FACTOR``.
    """

    power: float
    head: int
    entropy: float
    change: float


def tasks(source: Source, *, n: int, causal: bool = False) -> tuple[PowerTask, ...]:
    """Return one task per power, ascending."""
    return tuple(PowerTask(source=source, n=n, power=power, causal=causal) for power in POWERS)


def run(task: PowerTask, *, load: Load = load) -> tuple[PowerRow, ...]:
    """Measure the shares with one power, per head.

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
    """Compute ``relu(q_i · k_j / √d)^p`` divided by its row sum, ``[..., n, n]`` float64.

    A row without a positive logit is zero. Since ``x^p = exp(p log x)``, this is the softmax of the logarithms of the
    positive logits, with inverse temperature p.

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        power: p > 0.
        causal: whether query i attends to keys 0..i only.
    """
    logits = (q.double() @ k.double().mT).relu_()
    if causal:
        logits.tril_()
    largest = logits.amax(-1, keepdim=True)  # divide first, so that no power overflows
    return rows_over_sum((logits / largest.masked_fill(largest == 0, 1.0)).pow(power))
