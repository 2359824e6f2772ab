"""Claim: the smaller the error of a variant's outputs, the lower the perplexity of a model with that variant."""

from attention_core.claims.claim_parts import Axis, Figure, Quantity
from attention_core.claims.model_experiments import correlation_claim

CLAIM = correlation_claim(
    statement="The closer an attention variant's outputs are to softmax's outputs, the better a trained model "
    "predicts text if this variant replaces its softmax.",
    short="variants closer to softmax predict better",
    experiment="Softmax is replaced in all layers of SmolLM2-135M, without retraining. The nine replacements use only "
    "nearby keys (with or without the first tokens), only the largest logits, linear attention (with or without a "
    "decay over distance), or equal weights. Perplexity measures how badly the model predicts the next tokens. It is "
    "measured on at most the first 128 tokens of the text. The output error is the relative difference between the "
    "outputs of a replacement and of softmax. It is computed on the unchanged model's queries, keys and values, and "
    "averaged over heads and layers. The paper cited as the source of this claim compares approximations by this "
    "error, but does not measure perplexity.",
    rule="Two numbers are measured for each replacement for softmax: its output error (relative difference from "
    "softmax's outputs) and the perplexity of the model (lower if it predicts text better). The claim holds if the "
    "rank correlation between these numbers is at least {holds}. It partly holds if this correlation is at least "
    "{partly}. A rank correlation of 1 means that both numbers rank the replacements in the same order.",
    finding="An error in the output of one layer is passed on to all later layers. For {n} replacements for softmax, "
    "output error and perplexity (how badly the model predicts text) have a rank correlation of {rho}. A correlation "
    "of 1 means that both rank the replacements in the same order.",
    details="A perplexity of 10 means that the model is as uncertain as if it chose between 10 equally likely tokens. "
    "Kendall's τ (a rank correlation) between output error and perplexity is {tau}. All results are for the first "
    "{tokens} tokens of the text.",
    quantities=(
        Quantity("rho", "rank correlation of output error and prediction error (perplexity)"),
        Quantity(
            "tau",
            "Kendall's τ (a rank correlation) between the output error of a replacement for softmax and the model's "
            "perplexity",
        ),
        Quantity("n", "number of replacements for softmax"),
    ),
    figure=Figure(
        x=Axis("output", "output error (%)"),
        y=Axis("times", "perplexity ÷ perplexity of the unchanged model", log=True),
        by="variant",
    ),
)
