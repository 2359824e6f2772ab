"""Tests of embeddings before and after a swap, against states of transformers and definitions without scipy."""

import pytest
import torch

from attention_core.errors import InputError, UnknownVariantError
from attention_core.experiments import embedding
from attention_core.inputs import models
from attention_core.metrics import kendall
from attention_core.model_patching import from_word, swapped

QUERY, SENTENCES = "A lost key.", ("The key is lost.", "Rain fell.", "Bread is warm.")


def mean_state(loaded, text):
    ids = torch.tensor([loaded.tokenizer.encode(text).ids])
    with torch.no_grad():
        return torch.nn.functional.normalize(loaded.model(input_ids=ids).last_hidden_state[0].double().mean(0), dim=0)


def test_similarities_drift_and_ranking_equal_those_of_the_model_states():
    loaded = models.load("minilm")
    [task] = embedding.tasks(QUERY, SENTENCES, ["local~window~1"], (0, 3))
    [row] = embedding.run(task)
    old = [mean_state(loaded, text) for text in (QUERY, *SENTENCES)]
    with swapped(loaded.model, dict.fromkeys((0, 3), from_word("local~window~1"))):
        new = [mean_state(loaded, text) for text in (QUERY, *SENTENCES)]
    assert row.before == pytest.approx([float(x @ old[0]) for x in old[1:]], abs=1e-5)
    assert row.after == pytest.approx([float(x @ new[0]) for x in new[1:]], abs=1e-5)
    assert row.drift == pytest.approx(1 - sum(float(a @ b) for a, b in zip(old, new, strict=True)) / 4, abs=1e-5)
    assert row.tau == pytest.approx(kendall(row.before, row.after))
    assert row.before[0] == max(row.before)


def test_softmax_and_nystrom_with_all_landmarks_have_no_drift():
    for word in ("softmax", "nystrom~landmarks~64~inverse~exact"):
        [row] = embedding.run(embedding.tasks(QUERY, SENTENCES, [word], tuple(range(6)))[0])
        assert row.drift == pytest.approx(0, abs=1e-4)
        assert row.tau == pytest.approx(1)


def test_an_empty_text_or_unknown_variant_raises():
    with pytest.raises(InputError, match="empty"):
        embedding.run(embedding.tasks(" ", SENTENCES, ["linear"], (0,))[0])
    with pytest.raises(UnknownVariantError):
        embedding.run(embedding.tasks(QUERY, SENTENCES, ["linaer"], (0,))[0])
