"""Claim: the smaller the error of a variant's outputs, the lower the perplexity of a model with that variant."""

from attention_core.claims.claim_parts import Figure, Quantity
from attention_core.claims.model_experiments import correlation_claim

CLAIM = correlation_claim(
    statement="The smaller the output error of a replacement for softmax, the better a trained model with this "
    "replacement predicts text (lower perplexity).",
    short="output error predicts perplexity",
    experiment="Nine replacements for softmax are tested in all layers of SmolLM2-135M without retraining: windows "
    "with and without sinks, top-k, linear attention, retention, and the mean of the values. The model reads the first "
    "128 tokens of the text. Perplexity measures how badly the model predicts the next tokens. The output error is the "
    "relative difference between the outputs of the replacement and of softmax on the unchanged model's queries, keys "
    "and values. It is averaged over heads and layers. The paper compares approximations by this error, but does not "
    "test perplexity.",
    rule="Two numbers are measured for each replacement for softmax: its output error (the relative difference from "
    "softmax's outputs) and the perplexity of the model with this replacement. A rank correlation of 1 means that "
    "both numbers rank the replacements in the same order. The claim holds if the rank correlation is at least "
    "{holds}. It holds partly if it is at least {partly}.",
    finding="An error in one layer's output is passed on to all later layers. Over {n} replacements, output error "
    "and perplexity have a rank correlation of {rho}, where 1 means that both give the same ranking.",
    details="A perplexity of 10 means that the model is as uncertain as if it chose between 10 equally likely "
    "tokens. Kendall's τ, another rank correlation, is {tau}. Both output error and perplexity are measured on "
    "{tokens} tokens that SmolLM2 reads.",
    quantities=(
        Quantity(
            "rho",
            "rank correlation between a replacement's output error and the model's perplexity",
            brief="rank correlation of output error and perplexity",
        ),
        Quantity(
            "tau",
            "Kendall's τ (another rank correlation) between a replacement's output error and the model's perplexity",
        ),
        Quantity("n", "number of replacements for softmax"),
    ),
    figure=Figure(
        x="output",
        y="times",
        by="variant",
        x_title="output error (%)",
        y_title="perplexity ÷ unchanged model's",
        log="y",
    ),
)
