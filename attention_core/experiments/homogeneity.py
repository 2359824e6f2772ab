"""The entropy of softmax's and squared ReLU's weights when all logits are multiplied by one factor."""

from dataclasses import dataclass

from attention_core import registry
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source
from attention_core.metrics.entropy import entropy

FACTORS = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0, 5.66, 8.0)
"""Factors from a quarter to eight, two per doubling."""
VARIANTS = ("softmax", "relu2~normalizer~sum", "relu2")
"""Softmax, squared ReLU divided by its row sums, and squared ReLU divided by the length."""


@dataclass(frozen=True, kw_only=True)
class HomogeneityTask:
    """A task that measures ``VARIANTS`` with all logits multiplied by one factor.

    Attributes:
        factor: the factor.
    """

    source: Source
    n: int
    variants: tuple[str, ...]
    factor: float
    causal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HomogeneityRow:
    """The measurements of one head with one variant and one factor.

    Attributes:
        factor: factor on every logit.
        entropy: nats, mean over queries.
        change: largest absolute difference between an entry and the same entry with factor 1.
        row_low: smallest row sum.
        row_high: largest row sum.
    """

    variant: str
    factor: float
    head: int
    entropy: float
    change: float
    row_low: float
    row_high: float


def tasks(source: Source, *, n: int, causal: bool = False) -> tuple[HomogeneityTask, ...]:
    """Return one task per factor, ascending."""
    return tuple(
        HomogeneityTask(source=source, n=n, variants=VARIANTS, factor=factor, causal=causal) for factor in FACTORS
    )


def run(task: HomogeneityTask, *, load: Load = load) -> tuple[HomogeneityRow, ...]:
    """Measure the matrices with the factor and without it, per variant and head."""
    qkv = task.source.at_length(task.n, task.n, load)
    rows = []
    for word in task.variants:
        attention = registry.from_word(word)
        unscaled = attention.weights(qkv.q, qkv.k, causal=task.causal)
        scaled = attention.weights(task.factor * qkv.q, qkv.k, causal=task.causal)
        change = (scaled - unscaled).abs().amax((-2, -1))
        for head, (nats, changed, sums) in enumerate(
            zip(entropy(scaled).mean(-1), change, scaled.sum(-1), strict=True)
        ):
            rows.append(
                HomogeneityRow(
                    variant=word,
                    factor=task.factor,
                    head=head,
                    entropy=float(nats),
                    change=float(changed),
                    row_low=float(sums.min()),
                    row_high=float(sums.max()),
                )
            )
    return tuple(rows)
