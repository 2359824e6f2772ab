"""Tests of three causal algorithms with one result: comparisons, counts and times, against definitions."""

import math

import pytest
import torch

import attention_core as ac
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_modes import MATRIX, MAX_COMPARED_TOKENS, AgreementTask, CostTask, crossing
from attention_core.inputs import SyntheticSource, SyntheticSpec
from attention_core.inputs.source import first_tokens_at_most

RECURRENT = [v.key for v in ac.all_variants() if causal_modes.modes(v)]
SOURCE = SyntheticSource(SyntheticSpec(n=70, d=8, heads=2))


def cost(algorithm, n, d, word="linear"):
    [row] = causal_modes.run(CostTask(word=word, algorithm=algorithm, n=n, d=d))
    return row


def test_five_variants_have_a_choice_of_algorithms():
    assert set(RECURRENT) == {"linear", "cosine", "taylor2", "performer", "retention"}
    assert {key for key in RECURRENT if "cumsum" in causal_modes.modes(ac.variant(key))} == {"linear", "cosine"}
    assert causal_modes.modes(ac.variant("softmax")) == ()


@pytest.mark.parametrize("word", [*RECURRENT, "linear~feature_map~exp"])
@pytest.mark.parametrize("head", [None, 1])
def test_algorithms_agree_up_to_rounding_but_not_exactly(word, head):
    rows = causal_modes.run(AgreementTask(source=SOURCE, head=head, word=word))
    algorithms = causal_modes.algorithms(word)
    assert len(rows) == 2 * math.comb(len(algorithms), 2)
    assert all(r.difference < {"float32": 5e-6, "float64": 5e-14}[r.dtype] for r in rows)
    assert max(r.difference for r in rows if r.dtype == "float32") > 1e-8


def test_each_algorithm_equals_the_definition_at_its_own_cost():
    q, k, v = torch.randn(3, 1, 100, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    linear = ac.get("linear")
    phi = lambda x: torch.where(x > 0, x + 1, x.exp())  # noqa: E731
    matrix = (phi(q) @ phi(k).mT).tril()
    wanted = matrix / matrix.sum(-1, keepdim=True) @ v
    adds = {cost(algorithm, 100, 4).multiply_adds for algorithm in causal_modes.algorithms("linear")}
    assert len(adds) == 4
    for algorithm in causal_modes.algorithms("linear"):
        torch.testing.assert_close(causal_modes.causal_forward(linear, algorithm)(q, k, v), wanted)


def test_the_algorithm_keeps_the_other_settings():
    q, k, v = torch.randn(3, 1, 9, 4, generator=torch.Generator().manual_seed(0))
    relu = ac.get("linear", feature_map="relu")
    out = causal_modes.causal_forward(relu, "cumsum")(q, k, v)
    torch.testing.assert_close(out, relu.attend(q, k, v, causal=True))


def test_short_inputs_are_repeated_over_several_chunks(monkeypatch):
    seen = []
    whole = causal_modes.causal_forward
    monkeypatch.setattr(
        causal_modes,
        "causal_forward",
        lambda attention, algorithm: lambda q, k, v: seen.append((q, k, v)) or whole(attention, algorithm)(q, k, v),
    )
    causal_modes.run(AgreementTask(source=SOURCE, head=0, word="linear"))
    assert 2 * 64 < causal_modes.compared_length(70) == 160
    record = SOURCE.load()
    for q, _k, v in seen:
        assert torch.equal(q.float(), record.q[:1, torch.arange(160) % 70])
        assert torch.equal(v.float(), record.v[:1, torch.arange(160) % 70])
    assert [causal_modes.compared_length(n) for n in (1, 160, 200, 999)] == [160, 160, 200, MAX_COMPARED_TOKENS]


def test_the_difference_is_relative_to_the_second_tensor():
    a, b = torch.tensor([2.0, 9.0]), torch.tensor([2.0, 4.0])
    assert causal_modes.difference(a, b) == 1.25
    assert causal_modes.difference(torch.zeros(2), torch.zeros(2)) == 0


def test_long_inputs_are_compared_on_their_beginning():
    source = SyntheticSource(SyntheticSpec(n=MAX_COMPARED_TOKENS + 20, d=4, heads=1))
    seen = first_tokens_at_most(source.load(), MAX_COMPARED_TOKENS)
    assert torch.equal(seen.q, source.load().q[:, :MAX_COMPARED_TOKENS])
    two = first_tokens_at_most(SOURCE.load(), MAX_COMPARED_TOKENS).of_head(1)
    assert torch.equal(two.v[0], SOURCE.load().v[1])
    assert two.n == 70


@pytest.mark.parametrize("d", [8, 16, 32])
def test_cumsum_uses_more_memory_than_the_matrix_up_to_d_squared(d):
    rows = [cost(algorithm, n, d) for n in causal_modes.lengths(d) for algorithm in ("cumsum", MATRIX)]
    one, other = ([(r.n, r.peak_bytes) for r in rows if r.algorithm == algorithm] for algorithm in ("cumsum", MATRIX))
    n, held = crossing(one, other)
    assert n == pytest.approx(d * d, rel=0.2)
    assert held == pytest.approx(2 * 4 * n * d * (d + 1), rel=0.25)  # The terms and their sums.
    assert causal_modes.lengths(d)[-1] >= 2 * d * d


def test_counted_work_equals_the_formulas():
    n, d = 192, 8
    state = n * d * (d + 1)
    assert cost("cumsum", n, d).multiply_adds == 2 * state  # All states are written once and read once.
    assert cost("cumsum", n, d, "cosine").multiply_adds == 2 * n * (d + 1) * (d + 1)
    assert 2 * state <= cost("recurrent", n, d).multiply_adds < 2.3 * state
    assert cost(MATRIX, n, d).multiply_adds == 2 * n * n * d
    recurrent, chunked, cumsum, matrix = (
        cost(algorithm, n, d).peak_bytes for algorithm in ("recurrent", "chunked", "cumsum", MATRIX)
    )
    assert recurrent < chunked < cumsum < matrix  # n exceeds d².


def test_tasks_start_with_agreement_and_short_lengths():
    tasks = causal_modes.tasks(SOURCE, RECURRENT, head=0, word="linear", d=16)
    assert [t.word for t in tasks[:5]] == RECURRENT
    assert [t.algorithm for t in tasks[5:9]] == ["chunked", "recurrent", "cumsum", MATRIX]
    lengths = [t.n for t in tasks[5:]]
    assert lengths == sorted(lengths)
    slow = [t.n for t in causal_modes.tasks(SOURCE, (), head=0, word="linear", d=64) if t.algorithm == "recurrent"]
    assert max(slow) == 2048 < causal_modes.lengths(64)[-1]


def test_a_crossing_is_interpolated_between_logarithms():
    n = (16, 32, 64)
    linear, square = [(x, 20.0 * x) for x in n], [(x, float(x * x)) for x in n]
    assert crossing(linear, square) == pytest.approx((20, 400))
    assert crossing(square, linear) is None
    assert crossing([(x, 1.0) for x in n], square) == (16, 1.0)
    assert crossing([], square) is None
    assert crossing(linear[:2], square[:2]) == pytest.approx((20, 400))
