"""Claim: a feature map in place of softmax makes the cost linear in n."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from attention_core import articles, registry
from attention_core.benchmarking.counting import count
from attention_core.claims.claim import DECIMALS, Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_power

FULL, LINEAR = "full attention", "linear attention"


def _full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return registry.get("softmax").weights(q, k) @ v


ATTEND: dict[str, Callable[..., Tensor]] = {FULL: _full, LINEAR: registry.get("linear").attend}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """The multiply-adds and the peak of numbers in memory (``elements``) of one attention at one length, per head."""

    variant: str
    n: int
    multiply_adds: float
    elements: float


def measure(inputs: ExperimentInput) -> Iterator[CostRow]:
    """Yield the counted costs of both attentions at each length."""
    for n in ladder(inputs.longest):
        qkv = inputs.record(n)
        for variant, attend in ATTEND.items():
            counts = count(partial(attend, *qkv.tensors))
            adds, elements = counts.multiply_adds / qkv.heads, counts.peak_elements / qkv.heads
            yield CostRow(variant=variant, n=qkv.n, multiply_adds=adds, elements=elements)


def numbers(rows: Sequence[CostRow]) -> Numbers:
    """Return the exponents of power laws fitted over all lengths, and the ratio of work at the longest length."""
    full, linear = ([row for row in rows if row.variant == variant] for variant in (FULL, LINEAR))
    lengths = [row.n for row in linear]

    def exponent(costs: Sequence[float]) -> float:
        return round(fit_power(lengths, costs).exponent, DECIMALS)

    return {
        "work": exponent([row.multiply_adds for row in linear]),
        "memory": exponent([row.elements for row in linear]),
        "full": exponent([row.multiply_adds for row in full]),
        "saved": full[-1].multiply_adds / linear[-1].multiply_adds,
        "longest": lengths[-1],
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by both exponents, and by whether linear attention does less work at the longest length."""
    if max(numbers["work"], numbers["memory"]) > bounds["linear"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["saved"] > 1 else Verdict.PARTLY


CLAIM = Claim(
    key="linear_cost",
    number=2,
    statement="With a feature map in place of softmax, attention's cost grows only in proportion to the number of "
    "tokens, and so it is cheaper.",
    source=articles.MUST_IT_HAVE_SOFTMAX,
    place=Place("timing", {"t_side": "work"}, variants=("softmax", "linear")),
    experiment="Full attention and linear attention (feature map elu + 1) run at growing lengths of this input; their "
    "multiply-adds and the most numbers alive at once are counted.",
    rule="Holds where linear attention's work and memory grow no faster than n to the power {linear} and full "
    "attention does more work at the longest length; partly where only the growth is so.",
    bounds={"linear": 1.05},
    finding="Linear attention's work grows like n to the power {work} (its memory: {memory}), full attention's to the "
    "power {full}; at {longest} tokens full attention does {saved}× as much.",
    quantities=(
        Quantity("work", "growth of the work, power of n"),
        Quantity("memory", "growth of the memory"),
        Quantity("full", "growth of full attention's work"),
        Quantity("saved", "full work over linear work"),
        Quantity("longest", "longest input", "tokens"),
    ),
    figure=Figure(
        x="n",
        y="multiply_adds",
        by="variant",
        x_title="tokens n",
        y_title="multiply-adds of one head",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
    measures_lengths=True,
)
