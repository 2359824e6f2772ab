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
    experiment="Nine replacements for softmax are tested in all layers of SmolLM2-135M without retraining: windows "
    "with and without sinks, top-k, linear attention, retention, and the mean of the values. The model reads the "
    "first 128 tokens of the text. The output error is relative and is averaged over heads and layers. It is "
    "measured on the unchanged model's queries, keys and values. The paper compares approximations by this error, "
    "but does not test perplexity.",
    rule="The claim holds if the output error and the perplexity have a rank correlation of at least {holds}. It "
    "holds partly if this correlation is at least {partly}.",
    bounds=CORRELATION_BOUNDS,
    finding="For {n} replacements, the output error and the perplexity have a rank correlation of {rho} (Kendall's τ "
    "= {tau}). Both are measured on {tokens} of SmolLM2's tokens.",
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
