"""Definitions of technical terms, which the page's script shows wherever a term appears."""

from dataclasses import dataclass

from app.words.i18n import N_, _


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
            "One of several attentions that run side by side in a layer, each with queries, keys and values of its own."
        ),
    ),
    Entry(
        N_("causal"),
        N_("No token sees a later one: query i meets keys 0 to i only, as it must where text is written word by word."),
    ),
    Entry(
        N_("condition number"),
        N_("A matrix's largest singular value over its smallest: how much inverting it can magnify an error."),
    ),
    Entry(
        N_("decode step|decode steps"),
        N_("What is computed to write one further token, all earlier ones having been taken in already."),
    ),
    Entry(
        N_("effective rank"),
        N_(
            "How many directions a matrix really uses: the exponential of the entropy of its singular values' shares. "
            "It is at most the rank, and lower the more a few of them outweigh the rest."
        ),
    ),
    Entry(
        N_("entropy"),
        N_(
            "How widely a row of attention is spread: 0 where one key has all the weight, log n where all n have the "
            "same."
        ),
    ),
    Entry(
        N_("feature map|feature maps"),
        N_(
            "A function φ applied to queries and keys, so that φ(q) · φ(k) takes the place of exp(q · k): sums over "
            "keys can then be made once for all queries."
        ),
    ),
    Entry(
        N_("KV cache|key-value cache"),
        N_("The keys and values of all tokens so far, held so that the next one can look at them; it grows with each."),
    ),
    Entry(
        N_("kernel|kernels"),
        N_(
            "A function that says how alike a query and a key are. Softmax's is exp(q · k); one that is a product of "
            "features, φ(q) · φ(k), makes attention linear."
        ),
    ),
    Entry(
        N_("landmark|landmarks"),
        N_(
            "A point that stands for many tokens, such as the mean of neighbours: others meet it instead of each other."
        ),
    ),
    Entry(
        N_("logit|logits"),
        N_("A query's product with a key before the softmax, scaled: the higher, the more weight the key gets."),
    ),
    Entry(
        N_("nat|nats"),
        N_("The unit of entropy with natural logarithms: 1 nat is 1.44 bits, a choice among e = 2.72 equal ones."),
    ),
    Entry(N_("Pareto front"), N_("Those of several choices of which no other is both cheaper and better.")),
    Entry(
        N_("perplexity"),
        N_(
            "The exponential of the mean loss per token in nats: among how many equally likely tokens a model is as "
            "unsure."
        ),
    ),
    Entry(
        N_("total variation"),
        N_("Half the sum of the absolute differences of two distributions: the share of weight that lies elsewhere."),
    ),
)
"""The entries, in alphabetical order."""


def translated_entries() -> list[tuple[str, list[str]]]:
    """Return every definition with the forms of its term, in the visitor's language."""
    return [(_(entry.definition), _(entry.forms).split("|")) for entry in ENTRIES]
