"""Claim: variants that keep softmax's weight on the largest logits work in a trained model, and others do not."""

from collections.abc import Sequence

from attention_core import metrics
from attention_core.claims.claim import Claim, Figure, Numbers, Place, Quantity, Verdict
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
    key="sharpest_logits",
    number=30,
    statement="An attention that replaces softmax in a trained model survives if it keeps softmax's spikes, the weight "
    "on each query's sharpest logit, and fails if it does not.",
    source=Paper(
        "The Hedgehog & the Porcupine: Expressive Linear Attentions with Softmax Mimicry",
        2024,
        "https://arxiv.org/abs/2402.04347",
    ),
    place=Place("model", {"m_view": "predicts"}),
    experiment="9 stand-ins (windows with and without sinks, top-k, linear attention, retention, the mean of the "
    "values) are put in all layers of SmolLM2-135M, untrained, which reads the first 128 tokens of the text, and 48 of "
    "these tokens in a random order, twice in a row. The weight kept is the share of softmax's weight on the sharpest "
    "logit that the stand-in gives to the same key, mean over queries, heads and layers of the unchanged model.",
    rule="A stand-in keeps the sharpest logits where it keeps {keeps}% of that weight, and survives where it "
    "multiplies perplexity by at most {survives}. Holds where all that keep them survive and no other does; partly "
    "where more than a share of {half} of those that keep them survive, and less than that share of the others.",
    bounds={"keeps": KEEPS, "survives": SURVIVES, "half": 0.5},
    finding="On {tokens} of SmolLM2's tokens {alive} of the {keepers} stand-ins that keep the sharpest logits survive, "
    "and {spared} of the {others} others. Of the first group {copying}, of the second {others_copying} keep half of "
    "what copying saves. The weight kept and perplexity have a rank correlation of {rho}.",
    quantities=(
        Quantity("alive", "survive, of those that keep the sharpest logits"),
        Quantity("keepers", "keep the sharpest logits"),
        Quantity("spared", "survive, of the others"),
        Quantity("others", "do not keep them"),
        Quantity("copying", "copy, of those that keep them"),
        Quantity("others_copying", "copy, of the others"),
        Quantity("rho", "rank correlation of what is kept and perplexity"),
        TOKENS,
    ),
    figure=Figure(
        x="kept",
        y="times",
        by="variant",
        x_title="weight kept on the sharpest logit (%)",
        y_title="perplexity, over that as it is",
        log_y=True,
    ),
    measure=replacement_rows,
    numbers=numbers,
    verdict=verdict,
    needs=64,
    uses_decoder=True,
)
