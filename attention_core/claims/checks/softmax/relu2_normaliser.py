"""Claim: the row sums of squared ReLU grow more slowly than n, the number by which the rows are divided."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, UntestableError, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments import normalizer_length
from attention_core.metrics.fit import fit_power

SUMS, DIVISOR = "row sums", "number of tokens n"
SHORTEST = 16
"""Shortest length in tokens, which must be doubled at least once. Row sums of fewer tokens depend on single words."""
SLOWER = 0.9
"""Largest exponent that counts as slower growth than n: the ratio of sum to n then falls by 7% per doubling of n."""


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
    points: dict[int, list[tuple[int, float]]] = {}
    for row in inputs.rows_of_selected_heads(
        each for t in tasks for each in normalizer_length.run(t, load=inputs.load)
    ):
        # If a head has no positive logit at a length, its row sums are zero and their logarithm does not exist.
        if row.normalizer == "relu2" and row.log_z is not None:
            points.setdefault(row.head, []).append((row.n, row.log_z))
    grown = {head: sorted(own) for head, own in sorted(points.items()) if len(own) > 1}
    if not grown:
        raise UntestableError("No query has a positive logit, so all row sums are zero. Choose another head or input.")
    for head, own in grown.items():
        start, log_start = own[0]
        for n, log_z in own:
            yield GrowthRow(growing=SUMS, n=n, head=head, growth=math.exp(log_z - log_start))
            yield GrowthRow(growing=DIVISOR, n=n, head=head, growth=n / start)


def numbers(rows: Sequence[GrowthRow]) -> Numbers:
    """Return the median and smallest exponent, the share clearly below one, and the exponent of the median growth.

    The Entropy page shows the median growth over heads at each length.
    """
    exponents = []
    for head in {row.head for row in rows}:
        lengths, growth = (values(rows, name, growing=SUMS, head=head) for name in ("n", "growth"))
        exponents.append(fit_power(lengths, growth).exponent)
    lengths = sorted(set(values(rows, "n", growing=SUMS)))
    curve = [median(values(rows, "growth", growing=SUMS, n=n)) for n in lengths]
    return {
        "exponent": median(exponents),
        "slower": 100 * (sum(exponent <= SLOWER for exponent in exponents) / len(exponents)),
        "lowest": min(exponents),
        "curve": fit_power(lengths, curve).exponent,
    }


CLAIM = Claim(
    statement="Squared ReLU can replace softmax's exponential: it squares positive scores and sets the others to 0. "
    "Its row sums then grow more slowly than the number of tokens n, so dividing them by n is too strong.",
    short="squared ReLU's row sums grow slowly",
    source=articles.BETTER_WITH_SOFTMAX,
    place=Place("entropy", {"h_view": "normalizer"}),
    experiment="Squared ReLU turns each positive logit into its square, and each negative logit into 0. The row sum of "
    "a query is the sum of these squares over its keys. Row sums are measured at increasing lengths n of this input. "
    "At each length, the geometric mean over queries is taken. In every head, a power law n^a is fitted to the growth "
    "of this mean.",
    measure=measure,
    numbers=numbers,
    rule="With squared ReLU, the row sums (sums of a query's weights) grow as nᵖ, where n is the number of tokens. The "
    "claim holds if the exponent p is at most {clearly} in the median head. It holds partly if p is at most {clearly} "
    "in at least {some}% of the heads.",
    bounds={"clearly": SLOWER, "some": 25},
    verdict=Rule(holds=Condition("exponent", "<=", "clearly"), partly=Condition("slower", ">=", "some")),
    finding="Squared ReLU counts only positive logits, so not every additional key increases the row sum. In the "
    "median head, row sums grow as n to the power {exponent}, where n is the number of tokens.",
    details="Row sums grow clearly more slowly than n in {slower}% of the heads. In the head with the slowest "
    "growth, row sums grow as n to the power {lowest}. The Entropy page instead fits the median growth over heads, "
    "which is n to the power {curve}.",
    quantities=(
        Quantity(
            "exponent",
            "growth exponent p of squared ReLU's row sums (nᵖ) in the median head",
            brief="growth exponent of the row sums",
        ),
        Quantity(
            "slower",
            "share of heads where squared ReLU's row sums grow clearly more slowly than the length n",
            "%",
            brief="heads in which row sums grow clearly more slowly than n",
            of_heads=True,
        ),
        Quantity("lowest", "growth exponent p of squared ReLU's row sums (nᵖ), smallest over heads"),
        Quantity("curve", "growth exponent p of the median row sum over heads (nᵖ)"),
    ),
    figure=Figure(
        x="n",
        y="growth",
        by="growing",
        x_title="tokens n",
        y_title="growth relative to the shortest length (×)",
        log="xy",
    ),
    needs=2 * SHORTEST,
    measures_lengths=True,
)
