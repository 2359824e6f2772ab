"""Tests of removed parts: the remaining model, and attention without its gate."""

from dataclasses import replace

import pytest
import torch

import attention_core as ac
from attention_core.experiments import learning
from attention_core.learning import rates
from attention_core.learning.model import ModelSpec
from attention_core.learning.removed_parts import PARTS, models_without_parts, with_parts_removed


def model(word="linear", **settings):
    return ModelSpec(task="recall", word=word, **settings)


def test_each_part_is_removed_separately():
    whole = model("gla", positions="learned", tokens=32)
    found = models_without_parts(whole)
    assert found.keys() == PARTS.keys()
    assert found["convolution"] == replace(whole, convolution=0)
    assert found["positions"] == replace(whole, positions="none", tokens=0)
    assert found["layer"] == replace(whole, layers=1)
    assert replace(found["gate"], word="gla") == whole


@pytest.mark.parametrize(
    ("settings", "has"),
    [
        ({}, {"convolution", "layer"}),
        ({"convolution": 0}, {"layer"}),
        ({"layers": 1}, {"convolution"}),
        ({"layers": 1, "convolution": 0}, set()),
        ({"word": "gated_deltanet"}, {"convolution", "layer", "gate"}),
        ({"word": "gated_deltanet~decay~1.0"}, {"convolution", "layer"}),
        ({"word": "gla~gate~constant~decay~1.0"}, {"convolution", "layer"}),
        ({"word": "scalar_decay~write~rest"}, {"convolution", "layer"}),
        ({"positions": "rotary"}, {"convolution", "layer", "positions"}),
    ],
)
def test_only_parts_that_a_model_has_are_removed(settings, has):
    assert set(models_without_parts(model(**settings))) == has


@pytest.mark.parametrize("word", ["gated_deltanet", "gla", "kda", "mesa~decay~0.9", "scalar_decay", "fox"])
def test_a_variant_without_its_gate_does_not_forget(word):
    """Check that tokens whose keys are zero do not change how later queries attend to the first token."""
    attention = ac.from_word(models_without_parts(model(word))["gate"].word)
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 1, 24, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    long = attention.attend(q, k, v, causal=True)
    keep = [0, *range(16, 24)]
    k[:, :, 1:16] = 0  # these tokens write nothing
    if word == "fox":  # softmax gives a key of zero a weight, so its values are compared instead
        softmax = ac.get("softmax").attend(q, k, v, causal=True)
        torch.testing.assert_close(attention.attend(q, k, v, causal=True), softmax)
        return
    found = attention.attend(q, k, v, causal=True)[:, :, 16:]
    short = attention.attend(q[:, :, keep], k[:, :, keep], v[:, :, keep], causal=True)[:, :, 1:]
    torch.testing.assert_close(found, short)
    assert not torch.allclose(long[:, :, 16:], found)


def test_removing_the_gate_gives_the_name_of_the_ungated_variant():
    assert models_without_parts(model("gated_deltanet"))["gate"].word == "deltanet"
    assert models_without_parts(model("gated_deltanet~strength~0.5"))["gate"].word == "deltanet~strength~0.5"
    assert models_without_parts(model("fox"))["gate"].word == "softmax"


def test_a_plan_with_parts_removed_has_unique_models_and_no_tests(monkeypatch):
    monkeypatch.setattr(rates, "tuned_rates", lambda: {"recall": {"linear convolution=0": 0.5}})
    plan = learning.plan(["gated_deltanet", "deltanet", "linear"], seeds=(0, 1), lengths=(64,), steps=8)
    found = with_parts_removed(plan)
    assert not found.tests
    assert len(found.specs) == len(set(found.specs))
    assert set(plan.specs) <= set(found.specs)
    words = [spec.model.word for spec in found.specs if spec.seed == 0]
    assert sorted(words) == ["deltanet"] * 3 + ["gated_deltanet"] * 3 + ["linear"] * 3
    assert {spec.rate for spec in found.specs if spec.model == model("linear", convolution=0)} == {0.5}
    assert {(spec.seed, spec.steps) for spec in found.specs} == {(0, 8), (1, 8)}
