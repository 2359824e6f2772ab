"""Claim: in a trained model, only variants that keep softmax's weight on the largest logits still work."""

from collections.abc import Sequence

from attention_core import metrics
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Figure, Place, Quantity
from attention_core.claims.model_experiments import TOKENS, ReplacementRow, replacement_rows
from attention_core.claims.rule import Condition, Measured, Numbers, Rule, all_of
from attention_core.variant import Paper

KEEPS, SURVIVES, COPIES = 50, 1.5, 50
"""Thresholds: per cent of weight kept on the largest logit, ratio of perplexities, per cent of copying lost."""


def numbers(rows: Sequence[ReplacementRow]) -> Numbers:
    """Return how many of the variants that keep the largest logits still work, and how many of the others do."""
    keepers, others = [r for r in rows if r.kept >= KEEPS], [r for r in rows if r.kept < KEEPS]
    return {
        "keepers": len(keepers),
        "alive": sum(row.times <= SURVIVES for row in keepers),
        "copying": sum(row.lost <= COPIES for row in keepers),
        "others": len(others),
        "spared": sum(row.times <= SURVIVES for row in others),
        "others_copying": sum(row.lost <= COPIES for row in others),
        "rho": metrics.rank_correlation([row.kept for row in rows], [row.times for row in rows]),
        TOKENS.name: rows[0].tokens,
    }


CLAIM = Claim(
    statement="A replacement for softmax works in a trained model if it keeps the weight that softmax gives to each "
    "query's highest-scoring key, and fails otherwise.",
    short="a replacement must keep the highest weights",
    source=Paper(
        "The Hedgehog & the Porcupine: Expressive Linear Attentions with Softmax Mimicry",
        2024,
        "https://arxiv.org/abs/2402.04347",
        authors="Zhang et al.",
    ),
    place=Place("model", {"m_view": "predicts"}),
    experiment="Nine replacements for softmax are tested in all layers of SmolLM2-135M without retraining: windows "
    "with and without sinks, top-k, linear attention, retention, and the mean of the values. The model reads the first "
    "128 tokens of the text. In addition, 48 of these tokens are shuffled once, and the model reads this sequence "
    "twice in a row. Only copying can predict the second half. The gain from copying is how much better the second "
    "half is predicted than the first. The kept weight is the share of softmax's weight on a query's highest-scoring "
    "key that a replacement gives to this key. It is averaged over queries, heads and layers.",
    measure=replacement_rows,
    numbers=numbers,
    rule="A replacement keeps the weight of the highest-scoring keys if it gives them at least {keeps}% of their "
    "weight under softmax. It works if it multiplies the model's perplexity by at most {survives}. Two conditions: (1) "
    "Every replacement that keeps this weight works. (2) No other replacement works. The claim holds if both "
    "conditions are met. It holds partly if the share that works is above {half} among the replacements that keep this "
    "weight, and below {half} among the others.",
    bounds={"keeps": KEEPS, "survives": SURVIVES, "half": 0.5},
    verdict=Rule(
        requires=all_of(
            Condition("alive", ">", Measured("keepers", "half")), Condition("spared", "<", Measured("others", "half"))
        ),
        holds=all_of(Condition("alive", ">=", Measured("keepers")), Condition("spared", "<=", 0.0)),
    ),
    finding="A replacement works if the model's perplexity stays within a limit. This is true for {alive} of the "
    "{keepers} replacements that keep the weight of the highest-scoring keys, and for {spared} of the other {others} "
    "replacements.",
    details="The gain from copying is how much better the model predicts tokens at their second appearance than at "
    "their first. At least half of this gain remains with {copying} of the replacements that keep the weight of the "
    "highest-scoring keys, and with {others_copying} of the other replacements. The kept weight and perplexity have "
    "a rank correlation of {rho}, where −1 means opposite rankings. All values are measured on {tokens} tokens that "
    "SmolLM2 reads.",
    quantities=(
        Quantity(
            "alive",
            "number of replacements that keep the weight of the highest-scoring keys and work",
            brief="working replacements that keep the highest weights",
        ),
        Quantity("keepers", "number of replacements that keep the weight of the highest-scoring keys"),
        Quantity(
            "spared",
            "number of replacements that do not keep the weight of the highest-scoring keys, but work",
            brief="working replacements that do not keep the highest weights",
        ),
        Quantity("others", "number of replacements that do not keep the weight of the highest-scoring keys"),
        Quantity(
            "copying",
            "number of replacements that keep the weight of the highest-scoring keys and at least "
            "half of the gain from copying",
        ),
        Quantity(
            "others_copying",
            "number of replacements that do not keep the weight of the highest-scoring keys, but keep at least half "
            "of the gain from copying",
        ),
        Quantity(
            "rho",
            "rank correlation between the share of softmax's weight on the highest-scoring keys that is kept "
            "and the model's perplexity",
        ),
        TOKENS,
    ),
    figure=Figure(
        x="kept",
        y="times",
        by="variant",
        x_title="share of softmax's weight on the highest-scoring key that the variant keeps (%)",
        y_title="perplexity ÷ unchanged model's",
        log="y",
    ),
    needs=64,
    uses_decoder=True,
)
