"""Tests of the results that a server process computes and caches before its first visitor arrives."""

import pytest

import attention_core as ac
from app.jobs import cached
from app.server import warmup
from app.state import presets
from app.state.session import first_variants


def test_the_first_views_of_a_class_are_computed_in_advance(monkeypatch):
    """Check every text, causal and not, as a first visit shows it."""
    monkeypatch.setattr(presets, "texts", lambda: {"short": "A dog barks at a dog.", "other": "It rained."})
    warmup.read_presets()

    def fail(*args, **kwargs):
        pytest.fail("computed again")

    monkeypatch.setattr(cached.ByteLRUCache, "get", fail)
    for model in ac.inputs.models.DEFAULT_MODELS:
        for text in presets.texts().values():
            source = ac.inputs.TextSource(text, model.key, presets.LAYER)
            for causal in (False, True):
                cached.head_miniatures(source.at_layer(0), causal, special=True)
                for attention in first_variants():
                    if causal and attention.variant.causal_reason:
                        continue
                    view = cached.MatrixView(source=source, head=presets.HEAD, causal=causal, special=True)
                    cached.matrix(view, attention)
                    cached.ranks(view, attention)
                    cached.pattern(source, attention, head=view.head, causal=causal)


def test_warmed_up_records_leave_room_in_the_cache(monkeypatch):
    """Check that the records of all preset texts in each model of the set-up fit in 80 % of the hosted cache."""
    needed = 0.0
    for model in ac.inputs.models.DEFAULT_MODELS:
        short = cached.every_layer(ac.inputs.TextSource("the cat saw the dog", model.key))
        loaded = ac.inputs.models.load(model.key)
        tokens = sum(len(loaded.tokenizer.encode(text).ids) for text in presets.texts().values())
        needed += short.nbytes / short[0].n * tokens
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert needed < 0.8 * cached._part_bytes(cached.MODEL_RECORD_PARTS)
