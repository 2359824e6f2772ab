"""Claim: the row sums of squared ReLU grow more slowly than the n that divides them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles
from attention_core.claims.claim import (
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    UntestableError,
    Verdict,
)
from attention_core.experiments import normalizer_length
from attention_core.metrics.fit import fit_power

SUMS, DIVISOR = "what rows sum to", "n, by which they are divided"
SHORTEST = 16
"""Shortest length in tokens, which must be doubled at least once. Row sums of fewer tokens depend on single words."""
SLOWER = 0.9
"""Largest exponent that counts as slower growth than n: the sum then falls 7% behind with every doubling of n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """The growth factor of one head's row sum, or of n, since the shortest length where the head has a sum."""

    growing: str
    n: int
    head: int
    growth: float


def measure(inputs: ExperimentInput) -> Iterator[GrowthRow]:
    """Yield the growth factors of each head's row sum and of ``n``, since the head's shortest length with a sum.

    Raises:
        UntestableError: if no head has a positive logit at two lengths.
    """
    causal = inputs.record(inputs.longest).causal
    tasks = normalizer_length.tasks(inputs.source, longest=inputs.longest, causal=causal)
    found = inputs.rows_of_selected_heads(
        row for task in tasks for row in normalizer_length.run(task, load=inputs.load)
    )
    points: dict[int, list[tuple[int, float]]] = {}
    for row in found:
        # A head without a positive logit at a length has no sum there.
        if row.normalizer == "relu2" and row.log_z is not None:
            points.setdefault(row.head, []).append((row.n, row.log_z))
    grown = {head: sorted(own) for head, own in sorted(points.items()) if len(own) > 1}
    if not grown:
        raise UntestableError("No query has a positive logit here, so no row has a sum; choose another head or input.")
    for head, own in grown.items():
        start, log_start = own[0]
        for n, log_z in own:
            yield GrowthRow(growing=SUMS, n=n, head=head, growth=math.exp(log_z - log_start))
            yield GrowthRow(growing=DIVISOR, n=n, head=head, growth=n / start)


def numbers(rows: Sequence[GrowthRow]) -> Numbers:
    """Return the median and smallest exponent, the share clearly below one, and the median curve's exponent."""
    sums = [[row for row in rows if row.growing == SUMS and row.head == head] for head in {row.head for row in rows}]
    exponents = [fit_power([row.n for row in own], [row.growth for row in own]).exponent for own in sums]
    slower = sum(exponent <= SLOWER for exponent in exponents) / len(exponents)
    return {
        "exponent": median(exponents),
        "slower": 100 * slower,
        "lowest": min(exponents),
        "curve": fit_power(*median_growth(rows)).exponent,
    }


def median_growth(rows: Sequence[GrowthRow]) -> tuple[list[int], list[float]]:
    """Return the lengths, and the median growth over heads at each length: the curve on the Entropy page."""
    sums = [row for row in rows if row.growing == SUMS]
    lengths = sorted({row.n for row in sums})
    return lengths, [median(row.growth for row in sums if row.n == n) for n in lengths]


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the median exponent; ``PARTLY`` if enough heads have an exponent clearly below one."""
    if numbers["exponent"] <= bounds["clearly"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["slower"] >= bounds["some"] else Verdict.FAILS


CLAIM = Claim(
    key="relu2_normaliser",
    number=12,
    statement="Where squared ReLU replaces softmax and each row is divided by n, what the row sums to grows more "
    "slowly than n: in longer texts the division is too strong.",
    source=articles.BETTER_WITH_SOFTMAX,
    place=Place("entropy", {"h_view": "normalizer"}),
    experiment="At growing lengths of this input the squared positive logits of every query are summed up, and a power "
    "law n^a is laid through the growth of the sums (geometric mean over queries), head by head.",
    rule="Holds where the middle head's exponent a is at most {clearly}, partly where at least {some}% of the heads "
    "have such an exponent.",
    bounds={"clearly": SLOWER, "some": 25},
    finding="What rows sum to grows like n to the power {exponent} in the middle head and {lowest} in the slowest; "
    "{slower}% of the heads stay clearly behind n. A power law through the median of all heads' growth, which the "
    "Entropy page fits, has the exponent {curve}: a median of exponents need not be the exponent of a median.",
    quantities=(
        Quantity("exponent", "exponent of the middle head"),
        Quantity("slower", "heads clearly behind n", "%"),
        Quantity("lowest", "exponent of the slowest head"),
        Quantity("curve", "exponent of the median growth, as on the Entropy page"),
    ),
    figure=Figure(
        x="n",
        y="growth",
        by="growing",
        x_title="tokens n",
        y_title="growth since the shortest length (times)",
        log_x=True,
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=2 * SHORTEST,
    measures_lengths=True,
)
