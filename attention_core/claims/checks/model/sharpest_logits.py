"""Claim: variants that keep softmax's weight on the largest logits work in a trained model, and others do not."""

from collections.abc import Sequence

from attention_core import metrics
from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity, Verdict
from attention_core.claims.model_experiments import TOKENS, ReplacementRow, replacement_rows
from attention_core.variant import Paper

KEEPS, SURVIVES, COPIES = 50, 1.5, 50
"""Thresholds: per cent of weight kept on the largest logit, ratio of perplexities, per cent of copying lost."""


def numbers(rows: Sequence[ReplacementRow]) -> Numbers:
    """Return how many variants that keep the largest logits survive, and how many of the other variants do."""
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


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Compare the share of survivors among variants that keep the largest logits with the share among the others."""
    kept = numbers["alive"] / numbers["keepers"] if numbers["keepers"] else 0.0
    other = numbers["spared"] / numbers["others"] if numbers["others"] else 1.0
    if kept == 1 and other == 0:
        return Verdict.HOLDS
    return Verdict.PARTLY if kept > bounds["half"] > other else Verdict.FAILS


CLAIM = Claim(
    replacement_rows,
    numbers,
    verdict,
    statement="A replacement for softmax works in a trained model if it keeps softmax's weight on each query's largest "
    "logit, and fails otherwise.",
    source=Paper(
        "The Hedgehog & the Porcupine: Expressive Linear Attentions with Softmax Mimicry",
        2024,
        "https://arxiv.org/abs/2402.04347",
    ),
    place=Place("model", {"m_view": "predicts"}),
    experiment="Nine replacements for softmax are tested in all layers of SmolLM2-135M without retraining: windows "
    "with and without sinks, top-k, linear attention, retention, and the mean of the values. The model reads the "
    "first 128 tokens of the text. It also reads 48 of these tokens in random order, twice in a row. The kept weight "
    "is the share of softmax's weight on the largest logit that a replacement gives to the same key. It is averaged "
    "over queries, heads and layers.",
    rule="A replacement keeps the largest logits if its kept weight is at least {keeps}%. It works if it multiplies "
    "perplexity by at most {survives}. The claim holds if all replacements that keep the largest logits work, and no "
    "other replacement works. It holds partly in one case: the share that works is above {half} among the "
    "replacements that keep the largest logits, and below {half} among the others.",
    bounds={"keeps": KEEPS, "survives": SURVIVES, "half": 0.5},
    finding="On {tokens} of SmolLM2's tokens, {alive} of the {keepers} replacements that keep the largest logits "
    "work. Among the {others} others, {spared} work. At least half of the gain from copying is left in {copying} of "
    "the replacements that keep the largest logits, and in {others_copying} of the others. The kept weight and "
    "perplexity have a rank correlation of {rho}.",
    quantities=(
        Quantity("alive", "variants that keep the largest logits and pass"),
        Quantity("keepers", "keep the largest logits"),
        Quantity("spared", "others that work"),
        Quantity("others", "others"),
        Quantity("copying", "keep the largest logits and copy"),
        Quantity("others_copying", "others that copy"),
        Quantity("rho", "rank correlation, kept weight and perplexity"),
        TOKENS,
    ),
    figure=Figure(
        x="kept", y="times", by="variant", x_title="kept weight (%)", y_title="perplexity ÷ unchanged", log="y"
    ),
    needs=64,
    uses_decoder=True,
)
