"""Dropping softmax for a feature map makes cost linear in n."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import DECIMALS, Ask, Claim, Figure, Place, Quantity, Verdict, column
from attention_core.experiments.lengths import ladder
from attention_core.experiments.task import Row
from attention_core.measure.counting import count
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

FULL, LINEAR = "full attention", "linear attention"


def _full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return registry.get("softmax").weights(q, k) @ v


ATTEND: dict[str, Callable[..., Tensor]] = {FULL: _full, LINEAR: registry.get("linear").attend}


def measure(ask: Ask) -> list[Row]:
    """What each does and holds at each length, ``multiply_adds`` and peak ``elements`` per head."""
    rows: list[Row] = []
    for n in ladder(ask.longest):
        qkv = ask.record(n)
        for variant, attend in ATTEND.items():
            counts = count(partial(attend, qkv.q, qkv.k, qkv.v))
            adds, elements = counts.multiply_adds / qkv.heads, counts.peak_elements / qkv.heads
            rows.append({"variant": variant, "n": qkv.n, "multiply_adds": adds, "elements": elements})
    return rows


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """Exponents of power laws through all lengths, and how much is saved at the longest."""

    def exponent(variant: str, what: str) -> float:
        fit = fit_power(column(rows, "n", variant=variant), column(rows, what, variant=variant))
        return round(fit.exponent, DECIMALS)

    full, mapped = (column(rows, "multiply_adds", variant=variant)[-1] for variant in (FULL, LINEAR))
    return {
        "work": exponent(LINEAR, "multiply_adds"),
        "memory": exponent(LINEAR, "elements"),
        "full": exponent(FULL, "multiply_adds"),
        "saved": full / mapped,
        "longest": column(rows, "n")[-1],
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By both exponents, and by whether anything is saved yet."""
    if max(numbers["work"], numbers["memory"]) > bounds["linear"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["saved"] > 1 else Verdict.PARTLY


CLAIM = Claim(
    key="linear_cost",
    number=2,
    statement="With a feature map in place of softmax, attention's cost grows only in proportion to the number of "
    "tokens, and so it is cheaper.",
    source=Paper("Must attention have a softmax?", 2020, "https://kexue.fm/archives/7546"),
    place=Place("timing", {"t_side": "work"}, variants=("softmax", "linear")),
    experiment="Full attention and linear attention (feature map elu + 1) run at growing lengths of this input; their "
    "multiply-adds and the most numbers alive at once are counted.",
    rule="Holds where linear attention's work and memory grow no faster than n to the power {linear} and full "
    "attention does more work at the longest length; partly where only the growth is so.",
    bounds={"linear": 1.05},
    finding="Linear attention's work grows like n to the power {work} (its memory: {memory}), full attention's to the "
    "power {full}; at {longest} tokens full attention does {saved} times as much.",
    quantities=(
        Quantity(name="work", label="growth of the work, power of n"),
        Quantity(name="memory", label="growth of the memory"),
        Quantity(name="full", label="growth of full attention's work"),
        Quantity(name="saved", label="full work over linear work"),
        Quantity(name="longest", label="longest input", unit="tokens"),
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
    grows=True,
)
