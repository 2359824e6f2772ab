"""Claim: the error of the outputs predicts perplexity: the smaller the error, the lower the model's perplexity."""

from collections.abc import Sequence

from attention_core.claims.claim import Claim
from attention_core.claims.claim_parts import Figure, Numbers, Place, Quantity
from attention_core.claims.model_experiments import (
    CORRELATION_BOUNDS,
    CORRELATION_RULE,
    PERFORMER,
    TOKENS,
    ReplacementRow,
    rank_correlations,
    replacement_rows,
)


def numbers(rows: Sequence[ReplacementRow]) -> Numbers:
    """Return the rank correlations between the errors and the perplexity."""
    return rank_correlations(rows, [row.output for row in rows], [row.times for row in rows])


CLAIM = Claim(
    replacement_rows,
    numbers,
    CORRELATION_RULE,
    statement="The smaller the output error of a replacement for softmax in a trained model, the lower the perplexity.",
    source=PERFORMER,
    place=Place("model", {"m_view": "predicts"}),
    experiment="9 replacements (windows with and without sinks, top-k, linear attention, retention, mean of the "
    "values) are used in all layers of SmolLM2-135M without retraining. It reads the first 128 tokens of the text. "
    "The error is relative, on the unchanged model's queries, keys and values, averaged over heads and layers. The "
    "paper compares approximations by this error, but does not test perplexity.",
    rule="Holds if error and perplexity have a rank correlation of at least {holds}. Holds partly if it is at least "
    "{partly}.",
    bounds=CORRELATION_BOUNDS,
    finding="The output errors of {n} replacements and the perplexity have a rank correlation of {rho} (Kendall's "
    "τ {tau}). They are measured on {tokens} of SmolLM2's tokens.",
    quantities=(
        Quantity("rho", "rank correlation"),
        Quantity("tau", "Kendall's τ"),
        Quantity("n", "replacements"),
        TOKENS,
    ),
    figure=Figure(
        x="output", y="times", by="variant", x_title="output error (%)", y_title="perplexity ÷ unchanged", log="y"
    ),
    needs=64,
    uses_decoder=True,
)
