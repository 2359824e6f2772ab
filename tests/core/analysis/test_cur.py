"""Tests of CUR: Nyström's formula where it must be exact, the lower bound of the error, numbers computed by numpy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.analysis.low_rank import cur
from attention_core.experiments import cur_error
from attention_core.inputs import QKV, SyntheticSource, SyntheticSpec

SOURCE = SyntheticSource(SyntheticSpec(n=24, d=8, heads=2, sharpness=2.0))
RCOND = 1e-10


def head(source=SOURCE, number=1):
    qkv = source.load()
    return qkv.q[number].double().numpy(), qkv.k[number].double().numpy()


def softmax(q, k):
    logits = q @ k.T / np.sqrt(q.shape[-1])
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def off(a, s):
    return np.linalg.norm(a - s) / np.linalg.norm(s)


def by_blocks(s, columns, rows):
    """Return the article's ``[A; C] A⁺ [A B]``: chosen rows and columns are moved to the front and moved back."""
    n, m = len(s), len(rows)
    first = [*rows, *(i for i in range(n) if i not in rows)], [*columns, *(j for j in range(n) if j not in columns)]
    moved = s[np.ix_(*first)]
    a, b, c = moved[:m, : len(columns)], moved[:m, len(columns) :], moved[m:, : len(columns)]
    made = np.vstack([a, c]) @ np.linalg.pinv(a, rcond=RCOND) @ np.hstack([a, b])
    back = np.empty_like(s)
    back[np.ix_(*first)] = made
    return back


def measured(source=SOURCE, *, number=1, word="nystrom~landmarks~6", pick="even"):
    (task,) = cur_error.tasks(source, head=number, word=word, pick=pick)
    return cur_error.run(task)


def found(rows, made, m, pick=None):
    [row] = [row for row in rows if (row.made, row.m, row.pick) == (made, m, pick)]
    return row.error


@st.composite
def low_rank(draw):
    """Generate an integer matrix of some rank, with at least as many chosen columns and rows."""
    n = draw(st.integers(1, 12))
    rank = draw(st.integers(0, n))
    m = draw(st.integers(max(rank, 1), n))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    s = numbers.integers(-3, 4, (n, rank)) @ numbers.integers(-3, 4, (rank, n))
    rows, columns = (np.sort(numbers.permutation(n)[:m]) for _ in "rc")
    return s.astype(float), columns, rows


@settings(max_examples=200, deadline=None)
@given(low_rank())
def test_the_formula_is_exact_where_the_common_part_has_the_rank_of_the_whole(made):
    s, columns, rows = made
    common = s[np.ix_(rows, columns)]
    assume(np.linalg.matrix_rank(common) == np.linalg.matrix_rank(s))
    own = cur.nystrom_formula(*map(torch.from_numpy, (s, columns, rows))).numpy()
    np.testing.assert_allclose(own, s, atol=1e-6 * max(np.abs(s).max(), 1))
    best = cur.best_middle(*map(torch.from_numpy, (s, columns, rows))).numpy()
    np.testing.assert_allclose(best, s, atol=1e-6 * max(np.abs(s).max(), 1))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.data())
def test_no_choice_beats_the_best_matrix_of_its_rank_and_none_the_best_middle(seed, n, data):
    m = data.draw(st.integers(1, n))
    numbers = np.random.default_rng(seed)
    s = softmax(*(3 * numbers.standard_normal((2, n, 3))))
    rows, columns = (np.sort(numbers.permutation(n)[:m]) for _ in "rc")
    formula, best = (
        make(*map(torch.from_numpy, (s, columns, rows))).numpy() for make in (cur.nystrom_formula, cur.best_middle)
    )
    values = np.linalg.svd(s, compute_uv=False)
    floor = np.linalg.norm(values[m:]) / np.linalg.norm(values)
    assert floor <= off(best, s) + 1e-9
    assert off(best, s) <= off(formula, s) + 1e-6
    # No middle matrix close to the best one gives a smaller error.
    c, r = s[:, columns], s[rows]
    middle = np.linalg.pinv(c, rcond=RCOND) @ s @ np.linalg.pinv(r, rcond=RCOND)
    assert off(c @ middle @ r, s) == pytest.approx(off(best, s), abs=1e-6)
    other = middle + 0.1 * numbers.standard_normal(middle.shape)
    assert off(c @ other @ r, s) >= off(best, s) - 1e-9


@pytest.mark.parametrize("pick", cur.PICKS)
def test_the_formula_fills_one_block_from_the_other_three(pick):
    q, k = head()
    looked = cur.cur_approximation(SOURCE.load(), ac.get("nystrom", landmarks=6), 1, pick)
    s = softmax(q, k)
    np.testing.assert_allclose(looked.softmax, s, atol=1e-12)
    np.testing.assert_allclose(looked.formula, by_blocks(s, looked.columns, looked.rows), atol=1e-8)
    np.testing.assert_allclose(looked.formula[looked.rows], s[looked.rows], atol=1e-8)
    np.testing.assert_allclose(looked.formula[:, looked.columns], s[:, looked.columns], atol=1e-8)
    common = np.linalg.svd(s[np.ix_(looked.rows, looked.columns)], compute_uv=False)
    assert looked.condition == pytest.approx(common[0] / common[-1], rel=1e-6)
    assert (looked.rank, looked.common_rank) == (24, 6)


def test_entries_that_are_not_chosen_are_not_read():
    s = torch.rand(9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    columns, rows = torch.tensor([1, 4, 8]), torch.tensor([0, 4, 5])
    other = torch.full_like(s, 1e9)
    other[rows], other[:, columns] = s[rows], s[:, columns]
    assert torch.equal(cur.nystrom_formula(other, columns, rows), cur.nystrom_formula(s, columns, rows))
    assert not torch.allclose(cur.best_middle(other, columns, rows), cur.best_middle(s, columns, rows))


def test_evenly_spaced_tokens_stand_in_the_middle_of_their_segments():
    looked = cur.cur_approximation(SOURCE.load(), ac.get("nystrom", landmarks=6), 0, "even")
    assert looked.columns.tolist() == looked.rows.tolist() == [2, 6, 10, 14, 18, 22]


@pytest.mark.parametrize("method", ["segment_means", "kmeans"])
def test_the_nearest_token_is_one_of_its_landmarks_own(method):
    qkv, attention = SOURCE.load(), ac.get("nystrom", landmarks=5, method=method)
    looked = cur.cur_approximation(qkv, attention, 1, "nearest")
    parts = attention.variant.anatomy(*(x[1] for x in (qkv.q, qkv.k, qkv.v)), attention.params, causal=False)
    for x, name, chosen in zip(head(), ("query", "key"), (looked.rows, looked.columns), strict=True):
        centres = parts[f"{name}_landmarks"].numpy()
        apart = np.linalg.norm(centres[:, None] - x, axis=-1)
        owner = np.repeat(np.arange(5), [5, 5, 5, 5, 4]) if method == "segment_means" else apart.argmin(0)
        wanted = {int(min(np.flatnonzero(owner == i), key=lambda j: apart[i, j])) for i in set(owner.tolist())}
        assert set(chosen.tolist()) == wanted


def test_a_token_of_another_landmark_is_not_taken_however_near():
    # 0.5 is the first mean, of other tokens.
    far = torch.tensor([[[-3.0, 0.0], [4.0, 0.0], [0.5, 0.0], [2.0, 0.0]]])
    qkv = replace(SyntheticSource(SyntheticSpec(n=4, d=2, heads=1)).load(), q=far, k=far)
    looked = cur.cur_approximation(qkv, ac.get("nystrom", landmarks=2), 0, "nearest")
    assert looked.columns.tolist() == [0, 2]


def test_leverage_takes_what_weighs_most_in_the_leading_singular_vectors():
    looked = cur.cur_approximation(SOURCE.load(), ac.get("nystrom", landmarks=6), 1, "leverage")
    left, _, right = np.linalg.svd(softmax(*head()))
    for weights, chosen in (((left[:, :6] ** 2).sum(1), looked.rows), ((right[:6] ** 2).sum(0), looked.columns)):
        assert set(chosen.tolist()) == set(np.argsort(weights)[-6:].tolist())
        assert chosen.tolist() == sorted(chosen.tolist())


@pytest.mark.parametrize("pick", cur.PICKS)
def test_every_error_by_its_formula(pick):
    rows, s = measured(pick=pick), softmax(*head())
    values = np.linalg.svd(s, compute_uv=False)
    assert sorted({row.m for row in rows}) == [1, 2, 4, 6, 8]
    qkv = SOURCE.load()
    for m in (1, 2, 4, 6, 8):
        attention = ac.get("nystrom", landmarks=m)
        looked = cur.cur_approximation(qkv, attention, 1, pick)
        c, r = s[:, looked.columns], s[looked.rows]
        best = c @ np.linalg.pinv(c, rcond=RCOND) @ s @ np.linalg.pinv(r, rcond=RCOND) @ r
        assert found(rows, cur_error.FLOOR, m) == pytest.approx(np.sqrt((values[m:] ** 2).sum() / (values**2).sum()))
        assert found(rows, cur_error.BEST, m, pick) == pytest.approx(off(best, s), abs=1e-8)
        formula = off(by_blocks(s, looked.columns, looked.rows), s)
        assert found(rows, cur_error.FORMULA, m, pick) == pytest.approx(formula, rel=1e-6)
        made = attention.weights(qkv.q[1], qkv.k[1]).numpy()
        assert found(rows, cur_error.ATTENTION, m) == pytest.approx(off(made, s), rel=1e-4)
        assert found(rows, cur_error.UNIFORM, m) == pytest.approx(off(np.full((24, 24), 1 / 24), s))
    for other in set(cur.PICKS) - {pick}:
        looked = cur.cur_approximation(qkv, ac.get("nystrom", landmarks=6), 1, other)
        formula = off(by_blocks(s, looked.columns, looked.rows), s)
        assert found(rows, cur_error.FORMULA, 6, other) == pytest.approx(formula, rel=1e-6)


def test_nystrom_attention_is_as_it_is_set():
    words = ("nystrom~landmarks~6", "nystrom~landmarks~6~inverse~exact", "nystrom~landmarks~6~method~kmeans")
    errors = [found(measured(word=word), cur_error.ATTENTION, 6) for word in words]
    assert len(set(errors)) == 3


@pytest.mark.parametrize("pick", cur.PICKS)
def test_all_columns_and_rows_are_the_matrix(pick):
    rows = measured(word="nystrom~landmarks~99", pick=pick)
    assert found(rows, cur_error.FORMULA, 24, pick) < 1e-7
    assert found(rows, cur_error.BEST, 24, pick) < 1e-12
    assert found(rows, cur_error.FLOOR, 24) == 0


@pytest.mark.parametrize("pick", cur.PICKS)
def test_a_single_token_and_attention_that_is_alike_everywhere_lose_nothing(pick):
    for spec in (SyntheticSpec(n=1, d=4, heads=1), SyntheticSpec(n=10, d=4, heads=1, sharpness=0.0)):
        source = SyntheticSource(spec)
        rows = measured(source, number=0, pick=pick, word="nystrom~landmarks~3")
        assert all(row.error < 1e-6 for row in rows)
        looked = cur.cur_approximation(source.load(), ac.get("nystrom", landmarks=3), 0, pick)
        assert (looked.rank, looked.common_rank) == (1, 1)


def test_a_causal_models_softmax_is_read_both_ways():
    source = SyntheticSource(SyntheticSpec(n=8, d=4, heads=1, causal=True))
    qkv: QKV = source.load()
    assert qkv.causal
    np.testing.assert_allclose(
        cur.cur_approximation(qkv, ac.get("nystrom"), 0, "even").softmax, softmax(*head(source, 0))
    )


@pytest.mark.parametrize(
    ("n", "own", "wanted"),
    [(1, 5, (1,)), (2, 1, (1,)), (3, 2, (1, 2)), (16, 5, (1, 2, 4, 5, 8)), (17, 99, (1, 2, 4, 8, 17))],
)
def test_the_ladder_doubles_to_half_the_tokens(n, own, wanted):
    assert cur_error.ladder(n, own) == wanted
