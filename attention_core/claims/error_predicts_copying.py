"""The output's error predicts copying: the less a stand-in's outputs err, the better the model still copies."""

from collections.abc import Sequence

from attention_core.claims.claim import Claim, Figure, Numbers, Place, Quantity
from attention_core.claims.in_the_model import IN_ORDER, PERFORMER, TOKENS, StandInRow, by_order, order, stand_ins


def numbers(rows: Sequence[StandInRow]) -> Numbers:
    """How well the errors put in order what is lost of copying."""
    return order(rows, [row.lost for row in rows])


CLAIM = Claim(
    key="error_predicts_copying",
    number=32,
    statement="The error of the outputs tells of copying as well: the smaller it is in a trained model's layers, the "
    "more of its copying the model keeps, untrained.",
    source=PERFORMER,
    place=Place("model", {"m_view": "predicts"}),
    experiment="9 stand-ins (windows with and without sinks, top-k, linear attention, retention, the "
    "mean of the values) are put in all layers of SmolLM2-135M, untrained, which copies "
    "48 random tokens said twice. The error is that of the outputs, relative, on what the model as it is "
    "attends with when it reads the first 128 tokens of the text, mean over heads and layers.",
    rule="Holds where the error and what is lost of copying have a rank correlation of at least {holds}, partly from "
    "{partly} on.",
    bounds=IN_ORDER,
    finding="On {tokens} tokens the errors of {n} stand-ins and what they lose of copying have a rank correlation of "
    "{rho} (Kendall's τ {tau}).",
    quantities=(
        Quantity("rho", "rank correlation of error and what is lost of copying"),
        Quantity("tau", "Kendall's τ of the two"),
        Quantity("n", "stand-ins"),
        TOKENS,
    ),
    figure=Figure(
        x="output", y="lost", by="variant", x_title="mean error of the outputs (%)", y_title="lost of copying (%)"
    ),
    measure=stand_ins,
    numbers=numbers,
    verdict=by_order,
    needs=64,
    otherwise="A text on which top-k's outputs err less than those of windows with sinks, which copy worse.",
    reads=True,
)
