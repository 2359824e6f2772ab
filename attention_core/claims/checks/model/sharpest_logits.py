"""Claim: a variant can replace softmax in a trained model only if it keeps softmax's weight on the largest logits."""

from collections.abc import Sequence

from attention_core import metrics, registry
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity
from attention_core.claims.model_experiments import TOKENS, ReplacementRow, replacement_rows
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of

MIN_KEPT, MAX_RATIO, MAX_LOST = 50, 1.5, 50
"""Thresholds: per cent of weight kept on the largest logit, ratio of perplexities, per cent of copying lost."""


def numbers(rows: Sequence[ReplacementRow]) -> Numbers:
    """Return how many variants preserve perplexity, and how many preserve copying, in each of two groups.

    Variants of the first group keep at least ``MIN_KEPT`` per cent of the weight on the largest logits. Also return the
    size of both groups, and the rank correlation between the kept weight and the perplexity ratio.
    """
    keepers, others = [row for row in rows if row.kept >= MIN_KEPT], [row for row in rows if row.kept < MIN_KEPT]
    return {
        "keepers": len(keepers),
        "alive": sum(row.times <= MAX_RATIO for row in keepers),
        "copying": sum(row.lost <= MAX_LOST for row in keepers),
        "others": len(others),
        "spared": sum(row.times <= MAX_RATIO for row in others),
        "others_copying": sum(row.lost <= MAX_LOST for row in others),
        "rho": metrics.rank_correlation([row.kept for row in rows], [row.times for row in rows]),
        TOKENS.name: rows[0].tokens,
    }


CLAIM = Claim(
    statement="A variant can replace softmax in a trained model if it gives each query's highest-scoring key as much "
    "weight as softmax does. Otherwise, the model predicts text badly.",
    short="a variant works if it keeps the top weight",
    source=registry.variant("hedgehog").source,
    place=Place("model", {"m_view": "predicts"}),
    experiment="Softmax is replaced in all layers of SmolLM2-135M, without retraining. The nine replacements use only "
    "nearby keys (with or without the first tokens), only the largest logits, linear attention (with or without a "
    "decay over distance), or equal weights. The model reads the first 128 tokens of the text. To test copying, 48 of "
    "these tokens are shuffled once, and the model reads this sequence twice in a row. The second half can be "
    "predicted only by copying from the first. The gain from copying is how much lower the unchanged model's loss is "
    "in the second half than in the first. If a replacement raises the loss in the second half, this rise is the part "
    "of the gain that is lost. For each query, consider the highest-scoring key. The kept weight is the replacement's "
    "weight on this key, as a share of softmax's weight on it (at most 100%). It is averaged over queries, heads and "
    "layers.",
    measure=replacement_rows,
    rule="For each query, consider the weight that softmax gives to the highest-scoring key. A replacement for softmax "
    "keeps this highest weight if its own weight on the same key is, on average, at least {keeps}% of softmax's "
    "weight. A replacement works if the model's perplexity (how badly it predicts text) is at most {survives}× that of "
    "the unchanged model. The claim holds if two conditions are met. (1) Every replacement that keeps the highest "
    "weight works. (2) No other replacement works. The claim partly holds if most replacements that keep the highest "
    "weight work, and most others do not.",
    bounds={"keeps": MIN_KEPT, "survives": MAX_RATIO},
    verdict=Rule(
        requires=all_of(
            Condition("alive", ">", lambda numbers, _: numbers["keepers"] / 2),
            Condition("spared", "<", lambda numbers, _: numbers["others"] / 2),
        ),
        holds=all_of(Condition("alive", ">=", Measured("keepers")), Condition("spared", "<=", 0.0)),
    ),
    finding="A replacement for softmax works if the model's perplexity (how badly it predicts text) is at most 1.5× "
    "that of the unchanged model. This is true for {alive} of the {keepers} replacements that keep, on average, at "
    "least half of each query's highest weight, and for {spared} of the {others} others.",
    details="The gain from copying is how much better a model predicts repeated tokens because it copies them. At "
    "least half of this gain remains with {copying} of the replacements for softmax that keep each query's highest "
    "weight, and with {others_copying} of the other replacements. The share of the highest weight that a "
    "replacement keeps and the model's perplexity have a rank correlation of {rho}. At −1, keeping more of this "
    "weight would always give a lower perplexity. All results are for the {tokens} tokens that SmolLM2 reads.",
    quantities=(
        Quantity("alive", "replacements with low perplexity that keep at least half of each query's highest weight"),
        Quantity(
            "keepers",
            "number of replacements for softmax that, on average, keep at least half of each query's highest weight",
        ),
        Quantity("spared", "replacements with low perplexity that keep less than half of each query's highest weight"),
        Quantity(
            "others",
            "number of replacements for softmax that, on average, keep less than half of each query's highest weight",
        ),
        Quantity(
            "copying",
            "number of replacements for softmax that keep at least half of each query's highest weight and also at "
            "least half of the gain from copying",
        ),
        Quantity(
            "others_copying",
            "number of replacements for softmax that keep less than half of each query's highest weight, but at "
            "least half of the gain from copying",
        ),
        Quantity(
            "rho",
            "rank correlation, over all replacements for softmax, between perplexity and the share of each query's "
            "highest softmax weight that is kept",
        ),
        TOKENS,
    ),
    figure=Figure(
        x=Axis("kept", "share of each query's highest softmax weight that a replacement for softmax keeps (%)"),
        y=Axis("times", "perplexity ÷ perplexity of the unchanged model", log=True),
        by="variant",
    ),
    needs=64,
    uses_decoder=True,
)
