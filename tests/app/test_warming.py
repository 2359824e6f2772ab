"""What a process has looked at before its first visitor comes."""

import pytest

import attention_core as ac
from app import compute, presets, warming
from app.visit import first_variants


def test_what_a_class_moves_first_is_computed_before_it_comes(monkeypatch):
    """Every text and both directions, as a first visit looks at them."""
    monkeypatch.setattr(presets, "texts", lambda: {"short": "A dog barks at a dog.", "other": "It rained."})
    warming.read_presets()

    def again(*given, **named):
        pytest.fail("computed anew")

    monkeypatch.setattr(compute.Kept, "get", again)
    for model in ac.inputs.models.BUILT_IN:
        for text in presets.texts().values():
            source = ac.inputs.TextSource(text, model.key, presets.LAYER)
            for causal in (False, True):
                compute.head_miniatures(source.at_layer(0), causal, special=False)
                for attention in first_variants():
                    if causal and attention.variant.causal_reason:
                        continue
                    view = compute.View(source=source, head=presets.HEAD, causal=causal, special=False)
                    compute.matrix(view, attention)
                    compute.ranks(view, attention)
                    compute.pattern(source, attention, head=view.head, causal=causal)
