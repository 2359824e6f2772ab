"""Definitions of technical terms. The page's script shows a definition wherever its term appears."""

from dataclasses import dataclass

from app.words.i18n import N_, catalogue


@dataclass(frozen=True)
class Entry:
    """A term and its definition.

    Attributes:
        forms: spellings of the term, including the plural, separated by ``|``.
        definition: definition, in one or two sentences.
    """

    forms: str
    definition: str


ENTRIES = (
    Entry(
        N_("attention head|head|heads"),
        N_(
            "One of several attention functions that run in parallel in a layer, each with its own queries, keys "
            "and values."
        ),
    ),
    Entry(
        N_("budget|budgets"),
        N_("The setting of a variant that trades cost for accuracy, such as the window of local attention."),
    ),
    Entry(
        N_("causal"),
        N_(
            "Each query attends only to keys at or before its own position. This is necessary to generate text word "
            "by word."
        ),
    ),
    Entry(
        N_("condition number"),
        N_(
            "The ratio of a matrix's largest singular value to its smallest. It shows how much the inverse of the "
            "matrix can amplify errors."
        ),
    ),
    Entry(
        N_("connect all pairs|connects all pairs|pairs connected"),
        N_(
            "Layers connect a pair if information from the key reaches the query, directly or through other tokens "
            "in earlier layers."
        ),
    ),
    Entry(
        N_("cumsum|cumulative sum|cumulative sums"),
        N_("For each token, the sum over all tokens up to it. All these sums are computed in one operation."),
    ),
    Entry(
        N_("decode step|decode steps"),
        N_("The computation that generates the next token after all earlier tokens have been processed."),
    ),
    Entry(
        N_("direction error"),
        N_(
            "One minus the cosine of the angle between a variant's output and that of its reference, usually softmax."
            " It is 0 if both outputs point in the same direction."
        ),
    ),
    Entry(
        N_("effective keys"),
        N_("The number of equally weighted keys that would have the same entropy as a row of attention."),
    ),
    Entry(
        N_("effective rank"),
        N_(
            "The number of directions that a matrix effectively uses. It is the exponential of the entropy of the "
            "normalised singular values. It is at most the rank, and it is lower if a few singular values dominate."
        ),
    ),
    Entry(
        N_("entropy"),
        N_(
            "How widely a row of attention is spread: 0 if one key has all the weight, log n if all n keys have "
            "equal weight."
        ),
    ),
    Entry(
        N_("explicit matrix"), N_("The n × n matrix with the weight of every query on every key, stored as a whole.")
    ),
    Entry(
        N_("feature map|feature maps"),
        N_(
            "A function φ of queries and keys such that φ(q) · φ(k) replaces exp(q · k). Sums over keys are then "
            "computed once for all queries."
        ),
    ),
    Entry(
        N_("fused kernel|fused kernels"),
        N_(
            "A routine that computes several steps in one pass. For attention, it never stores the n × n matrix of "
            "scores."
        ),
    ),
    Entry(
        N_("gate|gates"),
        N_(
            "A factor computed from the input, usually between 0 and 1, that scales down a memory, a weight or an "
            "output."
        ),
    ),
    Entry(
        N_("KV cache|key-value cache"),
        N_(
            "The keys and values of all tokens so far, stored so that later tokens can attend to them. It grows with "
            "each token."
        ),
    ),
    Entry(
        N_("kernel|kernels"),
        N_(
            "A function that measures the similarity of a query and a key. Softmax's kernel is exp(q · k). A kernel "
            "of the form φ(q) · φ(k) makes attention linear."
        ),
    ),
    Entry(
        N_("KL divergence"),
        N_(
            "A measure of how much a variant's weights differ from those of its reference, usually softmax. It is 0 "
            "for equal weights."
        ),
    ),
    Entry(
        N_("landmark|landmarks"),
        N_(
            "A vector that represents many tokens, such as the mean of neighbouring tokens. Tokens attend to "
            "landmarks instead of to each other."
        ),
    ),
    Entry(
        N_("latent|latents"),
        N_("A short vector per token that is stored instead of its keys and values, which are computed from it."),
    ),
    Entry(
        N_("logit|logits"),
        N_(
            "The scaled dot product of a query and a key, before the softmax. The higher the logit, the more weight "
            "the key gets."
        ),
    ),
    Entry(
        N_("close to the threshold|at a clear distance from the threshold|far from the threshold"),
        N_(
            "How far the number that decides the verdict is from its threshold, relative to the larger of the two, or "
            "to the distance from the threshold to 100%: close below 10%, far above 50%."
        ),
    ),
    Entry(
        N_("matrix error|matrix errors"),
        N_(
            "The size of the difference between the attention matrices of a variant and of its reference, usually "
            "softmax, as a percentage of the size of the reference's matrix."
        ),
    ),
    Entry(
        N_("misplaced weight"),
        N_("The share of a query's weight that falls on other keys than in the reference, usually softmax."),
    ),
    Entry(
        N_("missed top keys"),
        N_(
            "The share of a query's 10 heaviest keys in the reference, usually softmax, that are not among its 10 "
            "heaviest keys in the variant."
        ),
    ),
    Entry(
        N_("multiply-adds"),
        N_("A count of the work of matrix products: multiplications, each followed by an addition."),
    ),
    Entry(
        N_("nat|nats"),
        N_(
            "The unit of entropy if natural logarithms are used. 1 nat is 1.44 bits. It is the entropy of e = 2.72 "
            "equally likely options."
        ),
    ),
    Entry(
        N_("output error|output errors"),
        N_(
            "The size of the difference between the outputs of a variant and of its reference, usually softmax, "
            "as a percentage of the size of the reference's output."
        ),
    ),
    Entry(
        N_("perplexity"),
        N_(
            "The exponential of the mean loss per token in nats. A perplexity of 10 means that the model is as "
            "uncertain as if 10 tokens were equally likely."
        ),
    ),
    Entry(
        N_("PSNR|dB"),
        N_(
            "Peak signal-to-noise ratio in dB: −10 log₁₀ of the mean squared difference from the original, where "
            "black is 0 and white is 1. Higher is closer. With 10 dB more, this difference is a tenth."
        ),
    ),
    Entry(
        N_("random features"),
        N_(
            "Functions of a query or a key with random numbers. Their products estimate softmax's exponential: "
            "more features, less noise."
        ),
    ),
    Entry(
        N_("RoPE"),
        N_(
            "Rotary position embedding. Queries and keys are rotated by angles that grow with their positions, so "
            "that logits depend on distances."
        ),
    ),
    Entry(
        N_("sink|sinks"),
        N_(
            "One of the first tokens of a text, to which every query can attend. Trained models put spare weight "
            "on these tokens."
        ),
    ),
    Entry(
        N_("state|states"), N_("A matrix of fixed size that summarises all earlier tokens. Each new token updates it.")
    ),
    Entry(
        N_("total variation"),
        N_(
            "Half the sum of the absolute differences between two distributions. It is the share of weight that "
            "falls on different keys."
        ),
    ),
    Entry(
        N_("write strength|write strengths|update strength"),
        N_("How far a token moves the value stored under its key towards its own value: 0 not at all, 1 completely."),
    ),
)
"""The entries, in alphabetical order."""


def translated_entries(language: str) -> list[tuple[str, list[str]]]:
    """Return every definition with the forms of its term, in a language."""
    said = catalogue(language).gettext
    return [(said(entry.definition), said(entry.forms).split("|")) for entry in ENTRIES]
