"""Claim: the error of the outputs predicts copying: the smaller the error, the better the model still copies."""

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
    """Return the rank correlations between the errors on the copied tokens and the loss of copying."""
    return rank_correlations(rows, [row.output_copying for row in rows], [row.lost for row in rows])


CLAIM = Claim(
    key="error_predicts_copying",
    number=32,
    statement="The error of an approximation's outputs in a trained model also predicts copying: the smaller the "
    "error, the more of its copying the model keeps without training. The paper compares approximations by this error, "
    "but does not test copying.",
    source=PERFORMER,
    place=Place("model", {"m_view": "predicts"}),
    experiment="9 stand-ins (windows with and without sinks, top-k, linear attention, retention, the mean of the "
    "values) are put in all layers of SmolLM2-135M, untrained, which reads 48 tokens of the text in a random order, "
    "twice in a row. The error is the relative error of the outputs on these same tokens, with the queries, keys and "
    "values of the unchanged model, mean over heads and layers.",
    rule="Holds where the error and the loss of copying have a rank correlation of at least {holds}, partly from "
    "{partly} on.",
    bounds=CORRELATION_BOUNDS,
    finding="With 48 of SmolLM2's first {tokens} tokens read twice, the errors of {n} stand-ins and their losses of "
    "copying have a rank correlation of {rho} (Kendall's τ {tau}).",
    quantities=(
        Quantity("rho", "rank correlation of error and loss of copying"),
        Quantity("tau", "Kendall's τ of the two"),
        Quantity("n", "stand-ins"),
        TOKENS,
    ),
    figure=Figure(
        x="output_copying",
        y="lost",
        by="variant",
        x_title="mean error of the outputs (%)",
        y_title="lost of copying (%)",
    ),
    measure=replacement_rows,
    numbers=numbers,
    verdict=judge_correlation,
    needs=64,
    uses_decoder=True,
)
