"""Claim: the error of the outputs predicts perplexity: the smaller the error, the lower the model's perplexity."""

from collections.abc import Sequence

from attention_core.claims.claim import Claim, Figure, Numbers, Place, Quantity
from attention_core.claims.model_experiments import (
    CORRELATION_BOUNDS,
    PERFORMER,
    TOKENS,
    ReplacementRow,
    judge_correlation,
    rank_correlations,
    replacement_rows,
)


def numbers(rows: Sequence[ReplacementRow]) -> Numbers:
    """Return the rank correlations between the errors and the perplexity."""
    return rank_correlations(rows, [row.output for row in rows], [row.times for row in rows])


CLAIM = Claim(
    key="error_predicts_perplexity",
    number=31,
    statement="The error of an approximation's outputs in a trained model predicts its perplexity: the smaller the "
    "error, the lower the perplexity without training. The paper compares approximations by this error, "
    "but does not test perplexity.",
    source=PERFORMER,
    place=Place("model", {"m_view": "predicts"}),
    experiment="9 stand-ins (windows with and without sinks, top-k, linear attention, retention, the "
    "mean of the values) are put in all layers of SmolLM2-135M, untrained, which reads the first "
    "128 tokens of the text. The error is that of the outputs, relative, on what the model as it is attends with, "
    "mean over heads and layers.",
    rule="Holds where error and perplexity have a rank correlation of at least {holds}, partly from {partly} on.",
    bounds=CORRELATION_BOUNDS,
    finding="On {tokens} of SmolLM2's tokens the errors of {n} stand-ins and the model's perplexity have a rank "
    "correlation of {rho} (Kendall's τ {tau}).",
    quantities=(
        Quantity("rho", "rank correlation of error and perplexity"),
        Quantity("tau", "Kendall's τ of the two"),
        Quantity("n", "stand-ins"),
        TOKENS,
    ),
    figure=Figure(
        x="output",
        y="times",
        by="variant",
        x_title="mean error of the outputs (%)",
        y_title="perplexity, over that as it is",
        log_y=True,
    ),
    measure=replacement_rows,
    numbers=numbers,
    verdict=judge_correlation,
    needs=64,
    uses_decoder=True,
)
