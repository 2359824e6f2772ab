"""Claim: the row sums of squared ReLU grow more slowly than n, the number by which the rows are divided."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments import normalizer_length
from attention_core.metrics.fit import fit_power

SUMS, DIVISOR = "row sums of squared ReLU", "number of tokens n"
SHORTEST = 16
"""Shortest length in tokens; the input needs twice as many. Row sums of fewer tokens depend on single words."""
MAX_EXPONENT = 0.9
"""Largest exponent that counts as slower growth than n: the ratio of sum to n then falls by 7% per doubling of n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """The growth of a head's row sum or of n (``growing``), as a factor since the first length with a positive sum."""

    growing: str
    n: int
    head: int
    growth: float


def measure(inputs: ExperimentInput) -> Iterator[GrowthRow]:
    """Yield the growth factors of each head's row sum and of ``n``, since the first length where the sum is positive.

    Raises:
        UntestableError: if no head has a positive logit at two lengths.
    """
    causal = inputs.record(inputs.longest).causal
    tasks = normalizer_length.tasks(inputs.source, longest=inputs.longest, causal=causal)
    points: dict[int, list[tuple[int, float]]] = {}
    for row in inputs.rows_of_selected_heads(
        each for t in tasks for each in normalizer_length.run(t, load=inputs.load)
    ):
        # Without a positive logit at a length, a head's row sums are zero and have no logarithm, so the length is left
        # out.
        if row.normalizer == "relu2" and row.log_z is not None:
            points.setdefault(row.head, []).append((row.n, row.log_z))
    points_by_head = {head: sorted(head_points) for head, head_points in sorted(points.items()) if len(head_points) > 1}
    if not points_by_head:
        raise UntestableError(
            "No head has positive logits at two or more lengths, so the growth of squared ReLU's row sums cannot be "
            "measured. Choose another head or input."
        )
    for head, head_points in points_by_head.items():
        start, log_start = head_points[0]
        for n, log_z in head_points:
            yield GrowthRow(growing=SUMS, n=n, head=head, growth=math.exp(log_z - log_start))
            yield GrowthRow(growing=DIVISOR, n=n, head=head, growth=n / start)


def numbers(rows: Sequence[GrowthRow]) -> Numbers:
    """Return the median and smallest exponent over heads, and the exponent of the heads' median growth.

    Also return the share of heads with an exponent clearly below one. The Entropy page shows the median growth.
    """
    exponents = []
    for head in {row.head for row in rows}:
        lengths, growth = (values(rows, name, growing=SUMS, head=head) for name in ("n", "growth"))
        exponents.append(fit_power(lengths, growth).exponent)
    lengths = sorted(set(values(rows, "n", growing=SUMS)))
    curve = [median(values(rows, "growth", growing=SUMS, n=n)) for n in lengths]
    return {
        "exponent": median(exponents),
        "slower": 100 * (sum(exponent <= MAX_EXPONENT for exponent in exponents) / len(exponents)),
        "lowest": min(exponents),
        "curve": fit_power(lengths, curve).exponent,
    }


CLAIM = Claim(
    statement="With squared ReLU in place of softmax's exponential (positive logits squared, others 0), the sum over "
    "a query's keys grows more slowly than the number of tokens n. Dividing by n then makes the weights too small.",
    short="squared ReLU's sums grow more slowly than n",
    source=articles.BETTER_WITH_SOFTMAX,
    place=Place("entropy", {"h_view": "normalizer"}),
    experiment="Squared ReLU turns each positive logit into its square, and each negative logit into 0. The row sum "
    "of a query is the sum of these squares over its keys. Row sums are measured at increasing lengths n of this "
    "input, as the geometric mean over the queries that have a positive logit. In every head, the growth of this "
    "mean is fitted by a power nᵖ.",
    rule="Squared ReLU squares positive logits and sets all others to 0. The row sum of a query is the sum of these "
    "values over its keys. It grows as nᵖ, where n is the number of tokens. The claim holds if the median of p over "
    "the heads is at most {clearly}. It partly holds if p is at most {clearly} in at least {some}% of the heads.",
    bounds={"clearly": MAX_EXPONENT, "some": 25},
    verdict=Rule(holds=Condition("exponent", "<=", "clearly"), partly=Condition("slower", ">=", "some")),
    finding="Squared ReLU sets negative logits to 0, so not every additional key increases a query's row sum (sum "
    "over its keys). For n tokens, row sums grow as nᵖ, with p = {exponent} (median over heads).",
    details="The heads' median growth factor at each length, which the Entropy page shows, grows as n to the power "
    "{curve}.",
    quantities=(
        Quantity("exponent", "growth exponent p of squared ReLU's row sums (nᵖ for n tokens), median over heads"),
        Quantity(
            "slower", "heads where row sums grow clearly more slowly than the number of tokens", "%", of_heads=True
        ),
        Quantity("lowest", "growth exponent p of squared ReLU's row sums (nᵖ for n tokens), smallest over heads"),
        Quantity(
            "curve",
            "growth exponent p of squared ReLU's row sums (nᵖ for n tokens), fitted to the heads' median "
            "growth factor at each length",
        ),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("growth", "growth factor relative to the shortest length (×)", log=True),
        by="growing",
    ),
    needs=2 * SHORTEST,
    measures_lengths=True,
)
