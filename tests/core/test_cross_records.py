"""Tests of records whose keys are those of another sequence: uploads, tensors, comparisons and sweeps."""

import io

import numpy as np
import pytest
import torch
from reference import error, softmax

import attention_core as ac
from attention_core.analysis.masks.pattern import pattern
from attention_core.analysis.matrix.compare import compare
from attention_core.analysis.matrix.head_scores import head_scores
from attention_core.analysis.matrix.miniatures import miniatures
from attention_core.errors import InputError, NotCrossError, ShapeError
from attention_core.inputs import QKV, TensorSource, from_upload, to_npz
from attention_core.inputs.source import first_tokens

DRAW = np.random.default_rng(3)
Q, K, V = (DRAW.normal(size=(2, tokens, size)) for tokens, size in ((5, 8), (9, 8), (9, 6)))


EXACT = softmax(Q, K)


def saved(**arrays):
    file = io.BytesIO()
    np.savez(file, **{"q": Q, "k": K, "v": V} | arrays)
    return file.getvalue()


def test_a_file_with_other_keys_is_read_and_saved_again():
    record = from_upload(saved(key_tokens=np.array(list("abcdefghi"))), "cross.npz")
    assert (record.n, record.m, record.crosses) == (5, 9, True)
    assert record.key_tokens == tuple("abcdefghi")
    again = from_upload(to_npz(record), "again.npz")
    assert (again.tokens, again.key_tokens) == (record.tokens, record.key_tokens)
    assert torch.equal(again.k, record.k)
    assert from_upload(saved(), "cross.npz").key_tokens == tuple(f"k{j}" for j in range(9))


def test_a_key_mask_hides_keys_and_a_mask_hides_queries():
    hidden = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1])
    record = from_upload(saved(key_mask=hidden, mask=np.array([0, 1, 1, 1, 1])), "cross.npz")
    assert (record.n, record.m) == (4, 7)
    assert record.tokens == ("t1", "t2", "t3", "t4")
    assert record.key_tokens == ("k0", "k1", "k3", "k4", "k5", "k6", "k8")
    np.testing.assert_allclose(record.v.numpy(), V[:, hidden == 1], rtol=1e-6)
    assert "The key mask hides 2 of 9 keys." in map(str, record.notices)
    square = from_upload(saved(q=K, key_mask=hidden), "square.npz")
    assert (square.n, square.m, square.crosses) == (9, 7, True)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"causal": np.array(True)}, "there can be no causal mask"),
        ({"key_tokens": np.array(["a", "b"])}, "Array key_tokens has the shape [2], but there are 9 positions."),
        ({"key_tokens": np.arange(9)}, "Array key_tokens has the type int64"),
        ({"key_mask": np.ones(5)}, "Array key_mask must have one number per position"),
        ({"key_mask": np.zeros(9)}, "marks all 9 positions"),
        ({"tokens": np.array(list("abcdefghi"))}, "Array tokens has the shape [9], but there are 5 positions."),
        ({"v": V[:, :5]}, "do not match"),
        ({"k": K[..., :5]}, "do not match"),
        ({"k": K[:1]}, "do not match"),
    ],
)
def test_mismatched_arrays_are_refused_with_a_message(arrays, words):
    with pytest.raises(InputError) as caught:
        from_upload(saved(**arrays), "cross.npz")
    assert words in str(caught.value)


def test_a_record_can_be_made_from_tensors_of_two_sequences():
    record = QKV.from_tensors(Q, K, V)
    assert record.key_labels == tuple(f"k{j}" for j in range(9))
    assert repr(record).startswith("QKV('tensors', 2 heads × 5 queries, 9 keys × 8 (values 6)")
    assert QKV.from_tensors(K, K, V).key_labels == tuple(f"t{j}" for j in range(9))
    assert QKV.from_tensors(K, K, V, key_tokens="abcdefghi").crosses
    assert TensorSource.of(Q, K, V) != TensorSource.of(Q, K, V, key_tokens="abcdefghi")
    with pytest.raises(ShapeError, match="There are 2 key labels for 9 keys"):
        QKV.from_tensors(Q, K, V, key_tokens="ab")
    with pytest.raises(NotCrossError, match="there can be no causal mask"):
        QKV.from_tensors(Q, K, V, causal=True)


def test_a_shorter_record_has_all_queries_and_the_first_keys():
    record = first_tokens(QKV.from_tensors(Q, K, V), 4)
    assert (record.n, record.m, record.key_tokens) == (5, 4, ("k0", "k1", "k2", "k3"))
    np.testing.assert_allclose(record.k.numpy(), K[:, :4], rtol=1e-6)
    with pytest.raises(InputError, match="Choose a number from 1 to 9 instead of 10"):
        first_tokens(QKV.from_tensors(Q, K, V), 10)


def test_a_comparison_has_rectangular_matrices_errors_and_costs():
    found = ac.compare(Q, K, V, ["softmax", "linear", "topk~k~3"])
    np.testing.assert_allclose(found.matrices["softmax"].numpy(), EXACT, atol=1e-6)
    assert found.matrices["linear"].shape == (2, 5, 9)
    linear = found.matrices["linear"].double().numpy()
    for head in range(2):
        row = next(row for row in found.rows if (row["variant"], row["head"]) == ("linear", head))
        assert row["matrix"] == pytest.approx(error(linear[head], EXACT[head]), rel=1e-5)
        out, exact = linear[head] @ V[head], EXACT[head] @ V[head]
        assert row["output"] == pytest.approx(error(out, exact), rel=1e-5)
        assert row["multiply_adds"] == ac.get("linear").cost(5, 8, keys=9).multiply_adds
    with pytest.raises(NotCrossError, match="Local needs queries and keys of the same tokens"):
        ac.compare(Q, K, V, ["local"])
    with pytest.raises(NotCrossError, match="as many keys as queries"):
        ac.compare(Q, K, V, ["softmax"], causal=True)
    with pytest.raises(NotCrossError, match="Local needs queries and keys of the same tokens"):
        ac.compare(K, K, V, ["local"], key_tokens="abcdefghi")


def test_an_average_over_heads_and_its_baseline_use_all_keys():
    found = compare(QKV.from_tensors(Q, K, V), ac.get("topk", k=3), head=None, causal=False)
    assert np.isfinite(found.weights).sum() >= 15
    seen = compare(QKV.from_tensors(Q, K, V), ac.get("softmax"), head=None, causal=False)
    np.testing.assert_allclose(seen.weights, EXACT.mean(0), atol=1e-6)
    exact, mean = EXACT @ V, np.broadcast_to(V.mean(-2, keepdims=True), (2, 5, 6))
    assert seen.uniform_error == pytest.approx(error(mean, exact), rel=1e-5)
    entropies = -(EXACT.mean(0) * np.log(EXACT.mean(0))).sum(-1)
    assert seen.passport.entropy == pytest.approx(entropies.mean(), rel=1e-5)


def test_a_pattern_counts_pairs_of_queries_and_keys():
    found = pattern(QKV.from_tensors(Q, K, V), ac.get("topk", k=3), head=0, causal=False)
    assert (found.pairs, found.possible, found.diameter) == (15, 45, None)
    assert found.allowed.tolist() == (np.argsort(np.argsort(-EXACT[0])) < 3).tolist()


def test_a_miniature_is_square_and_entropy_is_the_only_score():
    record = QKV.from_tensors(Q, K, V)
    [picture] = miniatures([record], causal=False)
    assert picture.shape == (2, 9, 9)
    np.testing.assert_allclose(picture[0].amax(-1)[0], EXACT[0][0].max() / EXACT[0].max(), rtol=1e-5)
    scores = head_scores([record], causal=False)
    assert scores[1].entropy == pytest.approx(-(EXACT[1] * np.log(EXACT[1])).sum(-1).mean(), rel=1e-5)
    assert np.isnan([scores[1].induction, scores[1].previous, scores[1].sink, scores[1].distance]).all()


def test_sweeps_vary_the_number_of_keys():
    rows = ac.sweep("entropy", (Q, K, V), ["softmax"], head=0)
    assert [row.n for row in rows] == [4, 6, 9]
    short = softmax(Q[0], K[0][:4])
    assert rows[0].entropy == pytest.approx(-(short * np.log(short)).sum(-1).mean(), rel=1e-5)
    swept = ac.sweep("error", (Q, K, V), ["topk", "linformer"], head=1)
    found = {row.value: row for row in swept if row.variant == "topk"}
    assert max(found) == 9
    assert found[9].matrix == pytest.approx(0, abs=1e-6)
    assert found[4].multiply_adds == ac.get("topk", k=4).cost(5, 8, keys=9).multiply_adds
    mean = next(row for row in swept if row.variant == "uniform")
    assert mean.matrix == pytest.approx(error(1 / 9, EXACT[1]), rel=1e-5)


def test_a_notebook_shows_rectangular_matrices():
    widget = ac.show(ac.compare(Q, K, V, ["softmax"], key_tokens="abcdefghi"), head=0)
    assert b'"row_labels": ["t0", "t1", "t2", "t3", "t4"]' in widget.message
    assert b'"col_labels": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]' in widget.message
