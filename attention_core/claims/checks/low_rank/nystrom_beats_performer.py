"""Claim: with 64 landmarks, Nyström attention has a smaller error than Performer with 4 d features (d: head size)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import FUTURE, check_not_uniform, future_percent
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of
from attention_core.experiments.error import seed_variants

NYSTROM, PERFORMER, UNIFORM = "Nyström", "Performer", "equal weights"
LANDMARKS, TOKENS_PER_LANDMARK = 64, 4
"""Number of landmarks, and minimum tokens per landmark: with fewer tokens, the approximation would save nothing."""
FEATURE_FACTORS, JUDGED_FACTOR = (1, 2, 4, 8), 4
"""Performer's number of features as multiples of the head size d: the values measured, and the value that is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturesRow:
    """The relative error of one head's matrix by one variant; Performer has ``features`` = ``times`` · d features.

    ``future`` (``FUTURE``): for a causal model, the percentage of softmax's attention on later tokens without a mask.
    """

    times: int
    features: int
    n: int
    future: float
    variant: str
    head: int
    seed: int | None
    error: float


def measure(inputs: ExperimentInput) -> Iterator[FeaturesRow]:
    """Yield the relative errors per head of Performer over features and seeds, of Nyström and of uniform attention.

    All are measured without a causal mask, because Nyström cannot be causal.
    """
    qkv = inputs.record()
    exact = registry.get("softmax").weights(qkv.q, qkv.k)
    d, hidden = qkv.q.shape[-1], future_percent(qkv)
    nystrom = registry.get("nystrom", landmarks=LANDMARKS).weights(qkv.q, qkv.k)
    baselines = {NYSTROM: metrics.relative_error(nystrom, exact), UNIFORM: metrics.uniform_error(exact)}
    check_not_uniform(baselines[UNIFORM])
    for factor in FEATURE_FACTORS:
        row = {"times": factor, "features": factor * d, "n": qkv.n, "future": hidden}
        for seed, performer in enumerate(seed_variants(registry.get("performer", features=factor * d))):
            error = metrics.relative_error(performer.weights(qkv.q, qkv.k), exact)
            yield from inputs.head_rows(FeaturesRow, **row, variant=PERFORMER, seed=seed, error=error)
        for variant, error in baselines.items():
            yield from inputs.head_rows(FeaturesRow, **row, variant=variant, seed=None, error=error)


def numbers(rows: Sequence[FeaturesRow]) -> Numbers:
    """Return the median errors, and the share of heads where Nyström's error is below Performer's median over seeds."""
    judged = [row for row in rows if row.times == JUDGED_FACTOR]
    nystrom = {row.head: row.error for row in judged if row.variant == NYSTROM}
    performer = {head: median(values(judged, "error", variant=PERFORMER, head=head)) for head in nystrom}
    return {
        "wins": 100 * fmean(nystrom[head] < performer[head] for head in nystrom),
        "nystrom": median(nystrom.values()),
        "performer": median(performer.values()),
        "uniform": median(values(judged, "error", variant=UNIFORM)),
        "features": judged[0].features,
        "future": judged[0].future,
    }


CLAIM = Claim(
    statement="Performer estimates softmax from random functions of queries and keys (features). Nyström attention "
    "with 64 landmarks (averaged tokens) comes closer to softmax, even if Performer's number of features is several "
    "times the head size.",
    short="Nyström is closer to softmax than Performer",
    source=articles.NYSTROMFORMER,
    place=Place("error", variants=("softmax", "nystrom", "performer")),
    experiment="Two approximations are compared with softmax's attention matrix. Nyström attention averages the "
    "tokens into 64 landmarks, each of which is the mean of at least four tokens. Performer estimates softmax from d, "
    "2d, 4d or 8d random functions of queries and keys (features), where d is the head size. For each of these "
    "numbers, the features are drawn five times. The verdict uses 4d features and the median of the five draws. The "
    "matrix error is the size of the difference from softmax's matrix, divided by the size of softmax's matrix.",
    rule="A matrix error is the relative difference of a matrix from softmax's matrix. Performer's number of random "
    "features is four times the head size. The claim holds if two conditions are met. (1) Nyström's matrix error is "
    "smaller than Performer's in at least {most}% of the heads. (2) Nyström's median matrix error over heads is at "
    "most {useful}× that of uniform attention, which gives all keys equal weights. The claim partly holds if "
    "Nyström's matrix error is smaller than Performer's in at least {some}% of the heads.",
    bounds={"most": 75, "some": 50, "useful": 0.9},
    verdict=Rule(
        requires=Condition("wins", ">=", "some"),
        holds=all_of(Condition("wins", ">=", "most"), Condition("nystrom", "<=", Measured("uniform", "useful"))),
    ),
    finding="Nyström attention loses details by averaging tokens, and Performer adds random noise. Nyström attention "
    "has a smaller matrix error (difference from softmax's matrix) than Performer in {wins}% of the heads.",
    details="Performer has a matrix error of {performer} with {features} random features (median over heads).",
    quantities=(
        Quantity("wins", "heads in which Nyström attention is closer to softmax than Performer", "%", of_heads=True),
        Quantity("nystrom", "Nyström's matrix error, median over heads", share=True),
        Quantity("performer", "matrix error of Performer, median over heads", share=True),
        Quantity("uniform", "matrix error of uniform attention (equal weights), median over heads", share=True),
        Quantity("features", "number of Performer's random features (four times the head size)"),
        FUTURE,
    ),
    figure=Figure(
        x=Axis("times", "number of Performer's random features ÷ head size", log=True),
        y=Axis("error", "matrix error (%)"),
        by="variant",
        percent=True,
    ),
    noncausal_method=NYSTROM,
    needs=LANDMARKS * TOKENS_PER_LANDMARK,
)
