"""What tests of stories share: a step on the page, the same without a page, and a head of the input they are about."""

import re

import driver
import numpy as np
from driver import set_state, spoken

import attention_core as ac
from attention_core.analysis.matrix.inside import look
from attention_core.inputs.labels import number_repeats
from pages.inside.story import Seen

SIZE = {"n": 24, "heads": 2, "d": 8}


def open_step(attention, step=1, *, again=None, **state):
    """A step on the page, of the second head of a short sequence if nothing else is said."""
    given = {"input": "synthetic", "head": 1, "causal": False, **SIZE, **state, "inside": attention, "step": step}
    return set_state(again, **given) if again else driver.open_page("inside", **given)


def source(**changes):
    return ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(**{**SIZE, **changes}))


def head(**changes):
    """Queries, keys and values of that head."""
    qkv = source(**changes).load()
    return qkv.q[1].double(), qkv.k[1].double(), qkv.v[1].double()


def seen(attention, *, causal=False, parts=(), **changes):
    """What a story is given, without a page.

    Args:
        attention: the variant.
        causal: whether the future is hidden.
        parts: parts and matrices that are other ones than the variant's.
        changes: of the sequence.
    """
    given = source(**changes)
    qkv = given.load()
    found = look(qkv, attention, 1, causal)
    other = dict(parts)
    return Seen(
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
    """The numbers that a sentence names."""
    [found] = re.findall(pattern, words.replace("−", "-").replace("\N{NO-BREAK SPACE}", " "))
    return tuple(float(x.rstrip("%.").replace(",", "")) for x in (found if isinstance(found, tuple) else (found,)))


def said(at, pattern):
    """The numbers that a sentence on the page names."""
    return figures(spoken(at), pattern)


def drawn_words(at):
    """Words drawn as pictures, as HTML."""
    return " ".join(h.proto.body for h in at.get("html"))
