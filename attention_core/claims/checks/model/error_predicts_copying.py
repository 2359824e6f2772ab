"""Claim: the error of the outputs predicts copying: the smaller the error, the better the model still copies."""

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
    """Return the rank correlations between the errors on the copied tokens and the loss of copying."""
    return rank_correlations(rows, [row.output_copying for row in rows], [row.lost for row in rows])


CLAIM = Claim(
    replacement_rows,
    numbers,
    CORRELATION_RULE,
    statement="The smaller the output error of a replacement for softmax in a trained model, the better the model "
    "copies.",
    source=PERFORMER,
    place=Place("model", {"m_view": "predicts"}),
    experiment="Nine replacements for softmax are tested in all layers of SmolLM2-135M without retraining: windows "
    "with and without sinks, top-k, linear attention, retention, and the mean of the values. The model reads 48 "
    "tokens of the text in random order, then the same tokens again. Only copying can predict the second half. The "
    "loss of copying is the share of this gain that a replacement loses. The output error is relative and is "
    "averaged over heads and layers. It is measured on the unchanged model's queries, keys and values. The paper "
    "compares approximations by this error, but does not test copying.",
    rule="The claim holds if the output error and the loss of copying have a rank correlation of at least {holds}. "
    "It holds partly if this correlation is at least {partly}.",
    bounds=CORRELATION_BOUNDS,
    finding="For {n} replacements, the output error and the loss of copying have a rank correlation of {rho} "
    "(Kendall's τ = {tau}). Both are measured on 48 of SmolLM2's first {tokens} tokens, read twice.",
    quantities=(
        Quantity("rho", "rank correlation"),
        Quantity("tau", "Kendall's τ"),
        Quantity("n", "replacements"),
        TOKENS,
    ),
    figure=Figure(
        x="output_copying", y="lost", by="variant", x_title="output error (%)", y_title="loss of copying (%)"
    ),
    needs=64,
    uses_decoder=True,
)
