"""Claim: the smaller the error of a variant's outputs, the better a model with that variant copies repeated tokens."""

from attention_core.claims.claim_parts import Axis, Figure, Quantity
from attention_core.claims.model_experiments import correlation_claim

CLAIM = correlation_claim(
    statement="The closer the outputs of a replacement for softmax are to softmax's outputs, the better a trained "
    "model with this replacement copies repeated text.",
    short="variants closer to softmax copy better",
    experiment="Softmax is replaced in all layers of SmolLM2-135M, without retraining. The nine replacements use only "
    "nearby keys (with or without the first tokens), only the largest logits, linear attention (with or without a "
    "decay over distance), or equal weights. To test copying, 48 tokens of the text are shuffled once, and the model "
    "reads this sequence twice in a row. The second half can be predicted only by copying the first. The gain from "
    "copying is how much better the second half is predicted than the first. The lost share is the part of this gain "
    "that is lost with a replacement. The output error is the relative difference between the outputs of the "
    "replacement and of softmax on the unchanged model's queries, keys and values. It is averaged over heads and "
    "layers. The paper cited as the source of this claim compares approximations by this error, but does not test "
    "copying.",
    rule="Two numbers are measured for each replacement for softmax. The first is the output error: the relative "
    "difference of the replacement's outputs from softmax's outputs. The second is the share of the gain from copying "
    "that the model loses with the replacement. The gain from copying is how much better the original model predicts "
    "tokens at their second appearance than at their first. The claim holds if the rank correlation between the two "
    "numbers is at least {holds}. It partly holds if this correlation is at least {partly}. A rank correlation of 1 "
    "means that both numbers rank the replacements in the same order.",
    finding="An error in one layer's output is passed on to all later layers. Over {n} replacements for softmax, the "
    "output error and the lost ability to copy repeated text have a rank correlation of {rho}, where 1 means the "
    "same ranking.",
    details="The gain from copying is how much better the model predicts tokens at their second appearance than at "
    "their first. The lost share is the part of this gain that a replacement loses. Kendall's τ (a rank correlation) "
    "between output error and lost share is {tau}. To measure the error and the lost share, 48 of the first {tokens} "
    "tokens of the text are drawn at random. SmolLM2 then reads these 48 tokens twice in a row.",
    quantities=(
        Quantity("rho", "rank correlation of output error and lost gain from copying repeated tokens"),
        Quantity(
            "tau",
            "Kendall's τ (a rank correlation), over the replacements for softmax, between output error and lost "
            "share of the gain from copying repeated tokens",
        ),
        Quantity("n", "number of replacements for softmax"),
    ),
    figure=Figure(
        x=Axis("output_copying", "output error of the replacement (%)"),
        y=Axis("lost", "share of the gain from copying that is lost (%)"),
        by="variant",
    ),
)
