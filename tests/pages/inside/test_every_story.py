"""Tests that every step of every story has text and draws, also with other settings, few tokens and a causal mask."""

import re

import pytest
from driver import spoken
from stories import SIZE, open_step, said, source

import attention_core as ac
from pages.inside.steps import link_numbers
from pages.inside.stories import discover

STORIES = sorted(discover())
TURNED = [
    ac.get("performer", kind="trig", row_norms="chi", orthogonal=False),
    ac.get("performer", kind="relu", features=3),
    ac.get("performer", kind="hyperbolic", features=100, row_norms="fixed"),
    ac.get("performer", kind="trig", row_norms="fixed"),
    ac.get("linear", feature_map="exp"),
    ac.get("linear", feature_map="relu"),
    ac.get("linear", feature_map="softmax"),
    ac.get("relu2", normalizer="sum"),
    ac.get("relu2", normalizer="fixed"),
    ac.get("relu2", normalizer="squared"),
    ac.get("emanet", iterations=1, bases=1),
    ac.get("emanet", iterations=9, bases=40, sharpness=20.0),
    ac.get("reformer", rounds=1, bucket_size=64),
    ac.get("reformer", rounds=16, bucket_size=2),
    ac.get("power_bert", keep=1.0),
    ac.get("power_bert", keep=0.05),
    ac.get("linformer", projection="conv", rank=1),
    ac.get("linformer", projection="gaussian", share=False),
    ac.get("pooled", stride=1),
    ac.get("pooled", stride=7, pool="max"),
    ac.get("pooled", stride=64, pool="max"),
    ac.get("pyramid", levels=16),
    ac.get("funnel", stride=1),
    ac.get("funnel", stride=64),
    ac.get("scalar_decay", decay=1.0),
    ac.get("gla", gate="harmonic"),
    ac.get("path", strength=0.0),
    ac.get("path", along="fixed", strength=2.0),
    ac.get("mesa", gate="keys", ridge=100.0),
]
BOTH_WAYS = ("reformer", "pooled")
"""Variants whose changed settings are tested with and without a causal mask, because the two forms differ much."""


def forms():
    """Yield variants with settings, and the other options of the page."""
    for key in STORIES:
        for given in ({}, {"n": 1, "heads": 1, "head": 0}, {"n": 2}, {"causal": True}, {"causal": True, "n": 5}):
            yield ac.get(key), given
        if key in BOTH_WAYS:
            yield from ((ac.get(key), {"causal": True, "n": n}) for n in (1, 30))
    for attention in TURNED:
        if attention.variant.causal_reason is None:
            yield attention, {"causal": True}
        if attention.variant.causal_reason or attention.key in BOTH_WAYS:
            yield attention, {}
    yield ac.get("reformer", bucket_size=2), {"causal": True, "n": 30}


def pictures(at):
    drawn = [c for c in at.main.get("bidi_component") if "heads.board" not in str(c.proto.id)]
    return len(drawn) + len(at.main.dataframe) + len(at.main.get("html"))


def test_every_story_shows_a_variant_with_an_anatomy():
    assert STORIES
    assert all(ac.get(key).variant.anatomy is not None for key in STORIES)


@pytest.mark.parametrize(("attention", "options"), list(forms()), ids=lambda x: getattr(x, "word", str(x)))
def test_every_step_explains_and_draws_something(attention, options):
    at = open_step(attention, **options)
    reason, notes = attention.variant.causal_reason, [c.value for c in at.main.caption if "cannot be causal" in c.value]
    assert bool(notes) == bool(reason and options.get("causal"))
    assert all(reason in words for words in notes)
    steps = at.segmented_control(key="step").options
    assert all(re.fullmatch(rf"{number} · \S.*", each) for number, each in enumerate(steps, 1)), steps
    for number in link_numbers(attention.key, len(steps)):
        at = at.segmented_control(key="step").set_value(number).run()
        assert not at.exception, (number, at.exception)
        assert not at.error
        assert at.session_state["step"] == number
        assert at.main.latex[0].value
        assert pictures(at), number
        assert not re.search(r"\bnan\b|\binf\b", spoken(at, "caption", "html")), number
    assert at.segmented_control(key="step").options[-1] == f"{len(steps)} · Comparison"


@pytest.mark.parametrize("key", STORIES)
def test_the_last_step_shows_the_errors_of_the_library(key):
    qkv = source().load()
    q, k = qkv.q.double(), qkv.k.double()
    attention = ac.get(key)
    own, full = attention.weights(q, k)[1], ac.get("softmax").weights(q, k)[1]
    if attention.variant.reference is not None:
        full = attention.variant.reference(q, k, attention.params, causal=False)[1]
    at = open_step(attention)
    *_others, last = link_numbers(key, len(at.segmented_control(key="step").options))
    at = at.segmented_control(key="step").set_value(last).run()
    error = float((own - full).norm() / full.norm())
    if error < 0.005:
        assert "'s matrix is less than 0.5%." in spoken(at)
        assert "of a row's weight would" not in spoken(at)
        return
    off, zero = said(at, r"[Tt]he matrix error (?:relative to .*'s matrix )?is ([\d.,]+)% \(equal weights: ([\d.]+)%\)")
    assert off == pytest.approx(100 * error, abs=0.51)
    assert zero == pytest.approx(100 * float((1 / SIZE["n"] - full).norm() / full.norm()), abs=0.51)
    if -own.clamp(max=0).sum() > 0.0005 * len(own) or (own.sum(-1) - 1).abs().max() > 0.005:
        assert "of a row's weight would" not in spoken(at)
    else:
        [wrong] = said(at, r"To match .*, ([\d.]+)% of a row's weight would have to move to other keys, on average")
        assert wrong == pytest.approx(100 * float((own - full).abs().sum(-1).mean() / 2), abs=0.51)
