"""An experiment for several claims about cost: it counts multiply-adds and memory at growing lengths."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from attention_core.benchmarking.counting import count
from attention_core.claims.claim import ExperimentInput
from attention_core.claims.claim_parts import values
from attention_core.experiments.lengths import measured_lengths
from attention_core.metrics.fit import fit_power

DECIMALS = 6
"""Decimals to which an exponent fitted to counts is rounded: rounding errors would turn 2 into 2.0000000001."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """The counted costs of one attention at one length, per head.

    ``peak`` is the most numbers in memory at one time, and ``largest`` is the size of the largest tensor.
    """

    variant: str
    n: int
    multiply_adds: float
    peak: float
    largest: float


def cost_rows(inputs: ExperimentInput, attends: Mapping[str, Callable[..., Tensor]]) -> Iterator[CostRow]:
    """Yield the counted costs at each length; ``attends`` has the functions ``(q, k, v) -> output`` by name."""
    for n in measured_lengths(inputs.longest):
        qkv = inputs.record(n)
        for variant, attend in attends.items():
            counts = count(partial(attend, *qkv.tensors))
            yield CostRow(
                variant=variant,
                n=n,
                multiply_adds=counts.multiply_adds / qkv.heads,
                peak=counts.peak_elements / qkv.heads,
                largest=counts.largest_elements / qkv.heads,
            )


def exponent(rows: Sequence[CostRow], variant: str, cost: str) -> float:
    """Return the exponent of the power law fitted to one of the variant's costs over the lengths of these rows."""
    return fit_power(values(rows, "n", variant=variant), values(rows, cost, variant=variant)).exponent
