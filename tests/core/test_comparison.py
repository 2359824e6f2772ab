"""Tests of ``compare`` and ``sweep``."""

import numpy as np
import pandas as pd
import pytest
import torch

import attention_core as ac
from attention_core.analysis.masks.pattern import pattern
from attention_core.analysis.matrix.compare import compare as matrix_of
from attention_core.errors import InputError
from attention_core.experiments import entropy_length, error
from attention_core.inputs import SyntheticSource, SyntheticSpec, TensorSource

Q, K, V = torch.randn(3, 2, 24, 8, generator=torch.Generator().manual_seed(0))
WORDS = ["softmax", "nystrom~landmarks~6", "linear"]


@pytest.mark.parametrize("convert", [torch.Tensor.numpy, torch.Tensor.double, lambda x: x])
def test_matrices_and_errors_equal_those_of_the_variants(convert):
    found = ac.compare(*map(convert, (Q, K, V)), [*WORDS[:2], ac.get("linear")])
    assert list(found.matrices) == WORDS
    softmax = (Q @ K.mT / 8**0.5).softmax(-1)
    assert torch.allclose(found.matrices["softmax"], softmax, atol=1e-6)
    for word in WORDS:
        own = ac.from_word(word).weights(Q, K)
        assert torch.equal(found.matrices[word], own)
        expected = [float((a - b).norm() / b.norm()) for a, b in zip(own @ V, softmax @ V, strict=True)]
        assert np.allclose(found.errors[word]["output"], expected, rtol=1e-3, atol=1e-5)


def test_the_table_has_a_row_for_each_variant_and_head():
    found = ac.compare(ac.QKV.from_tensors(Q, K, V), variants=WORDS)
    assert isinstance(found.table, pd.DataFrame)
    assert found.table.shape == (6, 11)
    cost = ac.get("linear").cost(24, 8, heads=2).multiply_adds
    assert found.table[found.table.variant == "linear"].multiply_adds.tolist() == [cost // 2] * 2


def test_a_causal_comparison_hides_the_future_and_refuses_non_causal_variants():
    found = ac.compare(Q, K, V, ["softmax", "local"], causal=True)
    assert not any(matrix.triu(1).any() for matrix in found.matrices.values())
    with pytest.raises(ac.LabError, match="cannot be causal"):
        ac.compare(Q, K, V, ["nystrom"], causal=True)
    with pytest.raises(TypeError, match="q, k and v"):
        ac.compare(Q, K, variants=["softmax"])


@pytest.mark.parametrize("ignored", [{"k": K}, {"v": V}, {"tokens": "a" * 24}, {"key_tokens": "a" * 24}])
def test_a_record_allows_no_second_labels_or_tensors(ignored):
    record = ac.QKV.from_tensors(Q, K, V)
    for call in (ac.compare, TensorSource.of):
        with pytest.raises(TypeError, match="Leave out these arguments"):
            call(record, **ignored)
    with pytest.raises(TypeError, match="Leave out these arguments"):
        TensorSource.of(record, causal=True)


def test_one_variant_or_claim_needs_no_list():
    record = ac.QKV.from_tensors(Q, K, V)
    for one in ("nystrom", ac.get("nystrom")):
        assert list(ac.compare(record, variants=one).matrices) == ["nystrom"]
        assert ac.sweep("entropy", record, one) == ac.sweep("entropy", record, ["nystrom"])
        assert len(ac.show(record, one).message) > 100
    assert [task.key for task in ac.claims.tasks(TensorSource.of(record), keys="double_softmax")] == ["double_softmax"]


def test_trained_variants_are_compared_alone_and_not_swept():
    one, other = (
        ac.get("fox").with_learned({"gate": torch.nn.Parameter(gate * torch.ones(2, 24, 1))}) for gate in (0, 1)
    )
    for several in ([one, other], ["softmax", "softmax"]):
        with pytest.raises(InputError, match="There are several variants"):
            ac.compare(Q, K, V, several)
    with pytest.raises(InputError, match="would lose its trained tensors"):
        ac.sweep("entropy", (Q, K, V), one)
    found = ac.compare(Q, K, V, one)
    assert torch.equal(found.matrices[one.word], one.weights(Q, K))
    assert len(ac.show(found).message) > 100


@pytest.mark.parametrize("head", [-1, 2])
def test_a_head_that_does_not_exist_is_refused(head):
    record = ac.QKV.from_tensors(Q, K, V)
    source = TensorSource.of(record)
    task = error.ErrorTask(source=source, word="softmax", head=head)
    calls = [
        lambda: record.of_head(head),
        lambda: ac.sweep("error", record, ["softmax"], head=head),
        lambda: ac.sweep("entropy", record, ["softmax"], head=head),
        lambda: ac.claims.tasks(source, head=head),
        lambda: error.run(task),
        lambda: ac.show(record, head=head),
        lambda: matrix_of(record, ac.get("mla"), head=head, causal=False),
        lambda: pattern(record, ac.get("gqa"), head=head, causal=False),
    ]
    for call in calls:
        with pytest.raises(InputError, match=f"Head {head} does not exist. Choose a head from 0 to 1."):
            call()


def test_a_sweep_returns_the_rows_of_the_experiment():
    source = TensorSource.of(Q, K, V)
    tasks = error.tasks(source, 24, ["local", "nystrom"], causal=True)
    assert ac.sweep("error", (Q, K, V), ["local", ac.get("nystrom")], causal=True) == tuple(
        row for task in tasks if "nystrom" not in task.word for row in error.run(task)
    )
    tasks = entropy_length.tasks(source, ["local"], longest=24)
    rows = ac.sweep("entropy", ac.QKV.from_tensors(Q, K, V), ["local"], head=1)
    assert rows == tuple(entropy_length.run(task)[1] for task in tasks)
    made = SyntheticSource(SyntheticSpec(n=16, d=4, heads=1))
    assert [row.n for row in ac.sweep("entropy", made, ["softmax"])][-1] == 16
    with pytest.raises(ValueError, match="Choose 'error' or 'entropy'"):
        ac.sweep("cost", made, ["softmax"])
