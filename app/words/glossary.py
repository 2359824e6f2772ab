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
            "A layer computes attention several times in parallel, each time with different queries, keys and "
            "values. Each of these computations is a head."
        ),
    ),
    Entry(
        N_("budget|budgets"),
        N_(
            "The setting that decides how much a variant may compute, such as the window of local attention. A larger "
            "budget costs more and usually reduces the error."
        ),
    ),
    Entry(
        N_("causal"),
        N_(
            "Each query attends only to its own token and earlier tokens. A model needs this to generate text word by "
            "word."
        ),
    ),
    Entry(
        N_("condition number"),
        N_(
            "The largest singular value of a matrix, divided by its smallest. The larger this ratio is, the more the "
            "inverse of the matrix can amplify errors."
        ),
    ),
    Entry(
        N_("connect all tokens|connects all tokens|connect all pairs|connects all pairs|pairs connected"),
        N_(
            "A stack of layers connects a query and a key if the query can read the key, directly or through other "
            "tokens in earlier layers."
        ),
    ),
    Entry(
        N_("cumsum|cumulative sum|cumulative sums"),
        N_("An operation that computes, for each token, the sum over all tokens up to it."),
    ),
    Entry(
        N_("decode step|decode steps"),
        N_(
            "The computation with which a model generates one more token. It reuses what was stored for the earlier "
            "tokens."
        ),
    ),
    Entry(
        N_("density|densities"),
        N_("Share of the query–key pairs with a weight other than zero, among the pairs that the mask allows."),
    ),
    Entry(
        N_("direction error"),
        N_(
            "One minus the cosine of the angle between a token's outputs in a variant and in its reference (usually "
            "softmax), averaged over tokens. It is 0 if both outputs of every token point in the same direction."
        ),
    ),
    Entry(
        N_("effective keys"),
        N_("How many keys with equal weights would have the same entropy as a row of attention: exp(entropy)."),
    ),
    Entry(
        N_("effective rank"),
        N_(
            "The number of directions that a matrix effectively uses: exp of the entropy of its singular values, each "
            "divided by the sum of all singular values. The effective rank is at most the rank. It is lower if a few "
            "singular values are much larger than the others."
        ),
    ),
    Entry(
        N_("entropy"),
        N_(
            "How widely the weights of a row are spread over the keys: 0 if one key has all the weight, log n if all "
            "n keys have equal weight."
        ),
    ),
    Entry(
        N_("evenness S"),
        N_(
            "Mean absolute weight of a row, divided by the root mean square of its weights, averaged over rows. In a "
            "row with n allowed keys, it is 1 if all weights are equal, and 1/√n if a single key has all the weight."
        ),
    ),
    Entry(
        N_("explicit matrix"), N_("The n × n matrix with the weight of every query on every key, stored as a whole.")
    ),
    Entry(
        N_("feature map|feature maps"),
        N_(
            "A function φ that turns queries and keys into vectors whose dot product φ(q) · φ(k) replaces exp(q · k). "
            "Sums over keys are then computed once for all queries."
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
            "A factor, usually between 0 and 1 and computed from the input, that scales down a stored state, a weight "
            "or an output."
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
        N_("KL divergence|KL"),
        N_(
            "How much a variant's weights differ from those of its reference, usually softmax: the sum over all keys "
            "of variant × log(variant ÷ reference), on average over queries. Each row is first divided by the sum "
            "of its absolute weights. KL is 0 if the rows then agree, and infinite if a key has weight only in the "
            "variant."
        ),
    ),
    Entry(
        N_("landmark|landmarks"),
        N_(
            "A vector that represents many tokens, such as the mean of neighbouring tokens. Tokens attend to a few "
            "landmarks instead of to all other tokens."
        ),
    ),
    Entry(
        N_("latent|latents"),
        N_(
            "A short vector that is stored for each token instead of the token's keys and values. The keys and values "
            "are computed from this vector."
        ),
    ),
    Entry(
        N_("logit|logits"),
        N_(
            "The scaled dot product of a query and a key, before the softmax. The higher the logit, the more weight "
            "the key gets."
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
        N_(
            "The share of a query's weight that a variant gives to different keys than its reference (usually softmax) "
            "does. It can exceed 100% if the weights of a row do not sum to 1 or are negative."
        ),
    ),
    Entry(
        N_("missed top keys"),
        N_(
            "A query's top keys are the ten keys with the largest weights in the reference, usually softmax. Missed "
            "top keys are the share of these ten keys that are not among the ten keys with the largest weights in "
            "the variant."
        ),
    ),
    Entry(
        N_("multiply-adds"),
        N_("The work of matrix products. One multiplication and the addition that follows count as one multiply-add."),
    ),
    Entry(
        N_("nat|nats"),
        N_(
            "The unit of entropy and of a model's loss if natural logarithms are used. 1 nat is 1.44 bits, the "
            "entropy of e = 2.72 equally likely options."
        ),
    ),
    Entry(
        N_("negative weight|negative weights"),
        N_("The sum of the negative weights in absolute value, as a share of the sum of all absolute weights."),
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
            "Peak signal-to-noise ratio in dB: −10 log₁₀ of the mean squared difference from the original image, where "
            "black is 0 and white is 1. A higher PSNR means a smaller difference: with 10 dB more, the mean squared "
            "difference is a tenth as large."
        ),
    ),
    Entry(
        N_("random features"),
        N_(
            "Numbers computed from a query or a key with random vectors. The dot product of a query's and a key's "
            "features estimates softmax's exponential. More features give less noise."
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
        N_("row sum|row sums"),
        N_("The sum of the weights in one row of an attention matrix. In softmax, it is 1 in every row."),
    ),
    Entry(
        N_("shared-QK softmax"),
        N_(
            "Softmax attention in which the normalised queries serve as keys, and a query leaves out its own token if "
            "it has other keys."
        ),
    ),
    Entry(
        N_("shared top keys|shared top key"),
        N_(
            "In each row, the 10 keys with the largest weights are found for the variant and for its reference. The "
            "measure is the share of these keys that are in both sets, averaged over rows."
        ),
    ),
    Entry(
        N_("sink|sinks"),
        N_(
            "One of the first tokens of a text. In many heads of trained models, queries without a relevant key put "
            "much of their weight on it. Some sparse variants let every query attend to the sinks."
        ),
    ),
    Entry(
        N_("state|states"),
        N_(
            "A matrix of fixed size in which a variant stores the keys and values of all tokens so "
            "far. Each new token updates it."
        ),
    ),
    Entry(
        N_("write strength|write strengths|update strength"),
        N_(
            "How far a token moves the value stored under the token's key towards the token's own value. At 0, the "
            "stored value does not change. At 1, the token's value replaces it."
        ),
    ),
)
"""The entries, in alphabetical order."""


def translated_entries(language: str) -> list[tuple[str, list[str]]]:
    """Return every definition with the forms of its term, in a language."""
    translate = catalogue(language).gettext
    return [(translate(entry.definition), translate(entry.forms).split("|")) for entry in ENTRIES]
