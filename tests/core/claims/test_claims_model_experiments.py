"""Tests of claims about a model with replaced attention: their numbers, calculated independently."""

import re

import numpy as np
import pytest
import torch
from trial import synthetic, trial

from attention_core import claims, registry
from attention_core.claims import Verdict, model_experiments
from attention_core.claims.checks.model import four_sinks, one_layer, sharpest_logits
from attention_core.claims.claim import ExperimentInput
from attention_core.claims.model_experiments import ReplacementRow
from attention_core.errors import InputError
from attention_core.experiments import swap
from attention_core.experiments.task import load
from attention_core.inputs import TextSource, models
from attention_core.inputs.text import record_layers
from attention_core.model_patching import from_word, losses, perplexity, swapped

HOLDS, PARTLY, FAILS = Verdict.HOLDS, Verdict.PARTLY, Verdict.FAILS
READS = [claim.key for claim in claims.all_claims() if claim.uses_decoder]
TEXT = "One for the salt, two for the rope, three for the lamp."


def experiment_input(text=TEXT, longest=512):
    return ExperimentInput(source=TextSource(text), head=None, longest=longest, load=load)


@pytest.mark.parametrize("key", READS)
def test_claims_about_the_decoder_need_a_text(key):
    found = trial(key, synthetic("clustered", n=80))
    assert (found.verdict, found.rows) == (Verdict.UNTESTABLE, [])
    assert found.why == "The check needs a text, which a language model reads. Choose a text."


@pytest.mark.parametrize(("tokens", "slow"), [(63, False), (64, True)])
def test_a_decoder_reads_only_texts_that_are_long_enough(tokens, slow):
    source = TextSource(" salt" * tokens)
    assert len(models.load("smollm2").tokenizer.encode(source.text).ids) == tokens
    assert {task.runs_decoder for task in claims.tasks(source, keys=READS)} == {slow}


def test_a_decoder_that_cannot_be_loaded_is_tried_only_on_request(monkeypatch):
    def fail(*_arguments, **_options):
        raise InputError("no model")

    monkeypatch.setattr(swap, "text_tokens", fail)
    assert all(task.runs_decoder for task in claims.tasks(TextSource(TEXT), keys=READS))


def test_a_text_is_read_up_to_the_requested_length_and_the_limit():
    smol = models.load("smollm2")
    whole = len(smol.tokenizer.encode(TEXT).ids)
    assert experiment_input().decoder_token_count == whole
    assert experiment_input("salt " * 300).decoder_token_count == 128
    assert experiment_input(longest=5).decoder_token_count == 5
    assert experiment_input(longest=10_000).decoder_token_count == whole


WORDY = (
    "The old bridge over the river was closed, so we walked along the bank to the ferry and paid two coins. A boy sold "
    "us warm bread, my sister counted seven herons, and nobody mentioned the letter until evening. "
    "Then rain began, the lamp went out, and somebody at the door asked whether this was still the way to the station."
)


def test_perplexity_and_copy_loss_equal_those_of_the_patched_model():
    smol, everywhere = models.load("smollm2"), tuple(range(30))
    ids, word = smol.tokenizer.encode(WORDY).ids, "sink~window~8"
    twice = [ids[i] for i in torch.randperm(len(ids), generator=torch.Generator().manual_seed(0)).tolist()[:48]] * 2
    with swapped(smol.model, dict.fromkeys(everywhere, from_word(word))):
        true, second = perplexity(losses(smol, ids)), losses(smol, twice)
    whole = losses(smol, twice)
    assert model_experiments.reading_row(experiment_input(WORDY), word, everywhere).perplexity == pytest.approx(
        true, rel=1e-4
    )
    saved = float(whole[:47].mean() - whole[48:].mean())
    lost = 100 * float(second[48:].mean() - whole[48:].mean()) / saved
    assert model_experiments.copy_loss_percent(experiment_input(WORDY), word, everywhere) == pytest.approx(
        lost, rel=1e-3
    )


def test_the_repeated_tokens_are_drawn_from_the_text():
    tokens = model_experiments.repeated_tokens(experiment_input(WORDY))
    assert tokens[:48] == tokens[48:]
    assert set(tokens) <= set(models.load("smollm2").tokenizer.encode(WORDY).ids)
    assert tokens != model_experiments.repeated_tokens(experiment_input(WORDY.upper()))


def test_a_text_of_one_repeated_word_is_untestable_for_copying():
    with pytest.raises(claims.UntestableError, match=r"The second time, .+ its loss is only .+ nats per token lower\."):
        model_experiments.copy_loss_percent(experiment_input("salt " * 100), "linear", (0,))


def test_the_kept_weight_is_measured_on_the_sharpest_logit():
    own, found = registry.get("local", window=3), []
    for qkv in record_layers(TEXT, model="smollm2", layers=range(30)):
        q, k = qkv.q.double(), qkv.k.double()
        future = torch.ones(qkv.n, qkv.n, dtype=torch.bool).triu(1)
        true = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf).softmax(-1)
        ours = own.weights(q, k, causal=True)
        for head in range(qkv.heads):
            for i in range(qkv.n):
                j = int(true[head, i].argmax())
                found.append(min(1.0, float(ours[head, i, j] / true[head, i, j])))
    assert model_experiments._kept_weight(
        TEXT, experiment_input().decoder_token_count, "local~window~3"
    ) == pytest.approx(sum(found) / len(found), rel=1e-3)
    assert model_experiments._kept_weight(TEXT, experiment_input().decoder_token_count, "softmax") == pytest.approx(1)


def test_the_control_predicts_each_token_from_its_window_only():
    smol = models.load("smollm2")
    ids = smol.tokenizer.encode(TEXT).ids
    wanted = []
    for i in range(1, len(ids)):
        hidden = smol.model(input_ids=torch.tensor([ids[max(0, i - 6) : i]])).last_hidden_state[0, -1]
        logits = hidden @ smol.model.get_input_embeddings().weight.mT
        wanted.append(-float(logits.log_softmax(-1)[ids[i]]))
    assert model_experiments.reread_perplexity(experiment_input(), 6) == pytest.approx(
        np.exp(np.mean(wanted)), rel=1e-3
    )


def test_a_query_sees_as_many_keys_as_the_control_reads():
    weights = from_word(f"sink~window~{four_sinks.WINDOW}").weights(
        torch.zeros(1, 99, 4), torch.zeros(1, 99, 4), causal=True
    )
    assert int((weights[0, -1] > 0).sum()) == four_sinks.REREAD_TOKENS


def row(kept, times, lost=0.0, output=0.0, copying=0.0):
    return ReplacementRow(
        variant="X", word="x", tokens=9, times=times, lost=lost, output=output, output_copying=copying, kept=kept
    )


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([row(50, 1.5), row(49, 1.6)], HOLDS),
        ([row(50, 1.6), row(49, 1.6)], FAILS),
        ([row(50, 1.5), row(49, 1.5)], FAILS),
        ([row(50, 1.6), row(49, 1.5)], FAILS),
        ([row(50, 1.5)] * 3 + [row(50, 1.6)] * 2 + [row(49, 1.6)], PARTLY),
        ([row(50, 1.5)] * 2 + [row(50, 1.6)] * 3 + [row(49, 1.6)], FAILS),  # Most variants that keep the spikes fail.
        ([row(50, 1.5), row(49, 1.5)] + [row(49, 1.6)] * 2, PARTLY),
        ([row(50, 1.5), row(49, 1.5), row(49, 1.6)], FAILS),  # Half of the others survive.
        ([row(50, 1.5), row(60, 1.0)], FAILS),  # There are no others to compare with.
        ([row(40, 9.0), row(30, 1.6)], FAILS),
    ],
)
def test_rows_of_sharpest_logits_give_the_expected_verdict(rows, verdict):
    claim = claims.claim("sharpest_logits")
    assert claim.judge(rows)[1] is verdict


def test_correlations_use_the_errors_of_the_same_tokens():
    text = ((1, 3, 9, 3), (2, 2, 8, 1), (3, 1, 7, 2))
    rows = [row(0, times, lost, output, copying) for output, copying, times, lost in text]
    # Correlation of 1 2 3 and 9 8 7.
    assert claims.claim("error_predicts_perplexity").judge(rows)[0]["rho"] == pytest.approx(-1)
    # Correlation of 3 2 1 and 3 1 2.
    assert claims.claim("error_predicts_copying").judge(rows)[0]["rho"] == pytest.approx(0.5)


def test_variants_are_counted_by_the_weight_they_keep():
    assert sharpest_logits.numbers([row(60, 1.0, 51), row(40, 2.0, 50)]) | {"rho": 0} == {
        "keepers": 1, "alive": 1, "copying": 0, "others": 1, "spared": 0, "others_copying": 1, "rho": 0, "tokens": 9,
    }  # fmt: skip


def test_numbers_of_four_sinks_and_one_layer_are_computed_from_rows():
    def sinks(reader, sinks, perplexity, lost):
        return four_sinks.SinkRow(reader=reader, sinks=sinks, tokens=9, perplexity=perplexity, lost=lost)

    rows = [sinks(four_sinks.WHOLE, 0, 6.0, 0.0), sinks(four_sinks.WINDOWED, 0, 40.0, 99.0)]
    rows += [sinks(four_sinks.WINDOWED, 4, 12.0, 70.0), sinks(four_sinks.WINDOWED, 8, 11.7, 60.0)]
    rows += [sinks(four_sinks.REREAD, 4, 10.0, None)]
    assert four_sinks.numbers(rows) == pytest.approx(
        {"window": 4, "four": 1.2, "gain": 2.5, "whole": 2, "lost": 70, "tokens": 9}
    )

    def layer(where, times, lost):
        return one_layer.LayerRow(variant="X", where=where, tokens=9, times=times, lost=lost)

    rows = [layer(one_layer.ONE_LAYER, 1.1, 5.0), layer(one_layer.ONE_LAYER, 1.2, 3.0)]
    rows += [layer(one_layer.ALL_LAYERS, 2.0, 50.0), layer(one_layer.ALL_LAYERS, 8.0, 99.0)]
    assert one_layer.numbers(rows) == {"worst": 1.2, "lost": 5, "floor": 8, "best": 2, "tokens": 9}


@pytest.mark.parametrize("key", READS)
def test_the_details_count_tokens_of_smollm2(key):
    claim = claims.claim(key)
    assert re.search("{tokens} tokens (that SmolLM2 reads|of the text)", claim.details)
