"""Helpers for the tests of stories (the step-by-step explanations of variants on the Inside page)."""

import re

import driver
import numpy as np
from driver import set_state, spoken

import attention_core as ac
from attention_core.analysis.matrix.inside import intermediate_results
from attention_core.inputs.labels import number_repeats
from pages.inside.steps import link_numbers
from pages.inside.story import HeadData

SIZE = {"n": 24, "heads": 2, "d": 8}


def open_step(attention, step=1, *, again=None, **state):
    """Return the page at a step of a variant's story, by default for the second head of a short sequence."""
    number = link_numbers(attention.key, step)[step - 1]
    options = {"input": "synthetic", "head": 1, "causal": False, **SIZE, **state, "inside": attention, "step": number}
    return set_state(again, **options) if again else driver.open_page("inside", **options)


def source(**changes):
    return ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(**{**SIZE, **changes}))


def head(**changes):
    """Return queries, keys and values of the second head of the short sequence; ``changes`` are settings of it."""
    qkv = source(**changes).load()
    return qkv.q[1].double(), qkv.k[1].double(), qkv.v[1].double()


def data(attention, *, causal=False, parts=(), **changes):
    """Return the ``HeadData`` that is the argument of a story's functions, for the second head.

    Args:
        attention: the variant.
        causal: whether later tokens are hidden.
        parts: intermediates and matrices that replace those of the variant.
        changes: changed settings of the sequence.
    """
    given = source(**changes)
    qkv = given.load()
    found = intermediate_results(qkv, attention, 1, causal)
    other = dict(parts)
    return HeadData(
        attention=attention,
        source=given,
        qkv=qkv,
        head=1,
        causal=causal,
        weights=other.pop("weights", found.weights),
        reference=other.pop("reference", found.reference),
        parts={**found.parts, **other},
        labels=number_repeats(qkv.tokens),
    )


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def figures(words, pattern):
    """Return the numbers that the groups of a regular expression find in a sentence."""
    [found] = re.findall(pattern, words.replace("−", "-").replace("\N{NO-BREAK SPACE}", " "))
    return tuple(float(x.rstrip("%.").replace(",", "")) for x in (found if isinstance(found, tuple) else (found,)))


def said(at, pattern):
    """Return the numbers that the groups of a regular expression find in the page's text."""
    return figures(spoken(at), pattern)


def drawn_words(at):
    """Return the HTML of the coloured tokens and pools on the page."""
    return " ".join(h.proto.body for h in at.get("html"))
