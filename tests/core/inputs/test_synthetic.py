import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core import metrics
from attention_core.errors import InputError
from attention_core.inputs import KINDS, SyntheticSpec, from_synthetic
from attention_core.inputs.positions import rotary
from attention_core.limits import current

KEYS = [kind.key for kind in KINDS]


def weights(spec):
    """Return softmax attention in float64, by its formula."""
    qkv = from_synthetic(spec)
    return (logits(qkv)).softmax(-1)


def logits(qkv):
    return qkv.q.double() @ qkv.k.double().mT / math.sqrt(qkv.q.shape[-1])


def mass_within(matrix, distance):
    position = torch.arange(matrix.shape[-1])
    near = (position[:, None] - position).abs() <= distance
    return float((matrix * near).sum(-1).mean())


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("rope", [False, True])
def test_logits_of_a_row_have_unit_spread_at_sharpness_one(key, rope):
    spread = logits(from_synthetic(SyntheticSpec(kind=key, n=100, d=24, rope=rope))).var(-1, correction=0).mean(-1)
    torch.testing.assert_close(spread, torch.ones(4, dtype=torch.float64), rtol=1e-4, atol=0)


@pytest.mark.parametrize("key", KEYS)
def test_the_default_type_and_device_of_torch_have_no_effect(key):
    spec = SyntheticSpec(kind=key, n=40, rope=True)
    usual, before = from_synthetic(spec), torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)  # as while transformers makes a model in another thread
    try:
        with torch.device("meta"):
            found = from_synthetic(spec)
    finally:
        torch.set_default_dtype(before)
    for name in "qkv":
        assert torch.equal(getattr(found, name), getattr(usual, name))


@pytest.mark.parametrize("key", KEYS)
def test_sharpness_multiplies_the_logits(key):
    plain = logits(from_synthetic(SyntheticSpec(kind=key, n=40)))
    sharp = logits(from_synthetic(SyntheticSpec(kind=key, n=40, sharpness=3.5)))
    torch.testing.assert_close(sharp, 3.5 * plain, rtol=1e-5, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    key=st.sampled_from(KEYS),
    n=st.integers(1, 70),
    d=st.integers(1, 17),
    heads=st.integers(1, 3),
    rope=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_kind_gives_a_complete_and_reproducible_record_at_every_size(key, n, d, heads, rope, seed):
    before = torch.get_rng_state()
    spec = SyntheticSpec(kind=key, n=n, d=d, heads=heads, rope=rope, seed=seed)
    qkv, again = from_synthetic(spec), from_synthetic(spec)
    assert qkv.q.shape == qkv.k.shape == qkv.v.shape == (heads, n, d)
    for name in "qkv":
        tensor = getattr(qkv, name)
        assert tensor.dtype == torch.float32
        assert tensor.isfinite().all()
        assert torch.equal(tensor, getattr(again, name))
    assert len(set(qkv.tokens)) == n
    assert all(qkv.tokens)
    assert qkv.total_tokens == n
    assert qkv.scale == pytest.approx(d**-0.5)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("key", KEYS)
def test_heads_and_seeds_give_different_tensors(key):
    qkv = from_synthetic(SyntheticSpec(kind=key, n=30))
    other = from_synthetic(SyntheticSpec(kind=key, n=30, seed=1))
    for name in "qkv":
        assert not torch.allclose(getattr(qkv, name)[0], getattr(qkv, name)[1], atol=0.1)
        assert not torch.allclose(getattr(qkv, name), getattr(other, name), atol=0.1)


@pytest.mark.parametrize("key", KEYS)
def test_values_have_mean_square_one(key):
    square = from_synthetic(SyntheticSpec(kind=key, n=64)).v.square().mean((-2, -1))
    torch.testing.assert_close(square, torch.ones(4))


@pytest.mark.parametrize("n", [4, 16, 128, 2048])
def test_the_needle_gets_most_mass_at_every_length(n):
    spec = SyntheticSpec(kind="needle", n=n, heads=2)
    qkv, matrix = from_synthetic(spec), weights(spec)
    where = qkv.tokens.index("needle")
    assert matrix[..., where].mean() > 0.5
    assert (matrix.argmax(-1) == where).double().mean() > 0.98
    assert where <= n // 2


def test_the_output_changes_strongly_without_the_needle():
    spec = SyntheticSpec(kind="needle", n=256)
    qkv, matrix = from_synthetic(spec), weights(spec)
    lost = matrix.clone()
    lost[..., qkv.tokens.index("needle")] = 0
    v = qkv.v.double()
    assert (metrics.relative_error(lost @ v, matrix @ v) > 0.9).all()


@pytest.mark.parametrize("n", [12, 200])
def test_attention_without_the_needle_is_nearly_uniform(n):
    qkv = from_synthetic(SyntheticSpec(kind="needle", n=n))
    hay = torch.arange(n) != qkv.tokens.index("needle")
    rest = logits(qkv)[..., hay].softmax(-1)
    assert metrics.entropy(rest).mean() > 0.8 * math.log(n - 1)


@pytest.mark.parametrize(("d", "expected"), [(32, 4), (4, 4), (3, 3)])
def test_low_rank_logits_have_rank_four_or_less(d, expected):
    qkv = from_synthetic(SyntheticSpec(kind="low_rank", n=60, d=d))
    found = torch.linalg.matrix_rank(logits(qkv), rtol=1e-5)
    assert found.tolist() == [expected] * 4
    assert torch.linalg.matrix_rank(logits(from_synthetic(SyntheticSpec(kind="gaussian", n=60, d=d))))[0] == d


@pytest.mark.parametrize(("key", "groups"), [("block_topics", 8), ("clustered", 8)])
def test_tokens_of_a_group_attend_mostly_to_their_group(key, groups):
    spec = SyntheticSpec(kind=key, n=120)
    letters = [token[0] for token in from_synthetic(spec).tokens]
    same = torch.tensor([[a == b for b in letters] for a in letters])
    inside = float((weights(spec) * same).sum(-1).mean())
    assert inside > 0.5
    assert inside > 3 * float(same.double().mean())
    assert len(set(letters)) == groups


def test_topics_are_contiguous_and_clusters_are_not():
    def borders(key):
        letters = [token[0] for token in from_synthetic(SyntheticSpec(kind=key, n=160)).tokens]
        return sum(a != b for a, b in pairwise(letters))

    assert borders("block_topics") == 7
    assert borders("clustered") > 100


def test_labels_are_numbered_within_a_topic():
    tokens = from_synthetic(SyntheticSpec(kind="block_topics", n=20)).tokens
    assert tokens[:6] == ("A0", "A1", "A2", "B0", "B1", "C0")


def test_labels_without_topics_are_positions():
    assert from_synthetic(SyntheticSpec(n=13)).tokens[12] == "t12"


def test_local_correlation_keeps_mass_near_the_diagonal():
    local, plain = (weights(SyntheticSpec(kind=key, n=256)) for key in ("locally_correlated", "gaussian"))
    assert mass_within(plain, 8) < 0.1
    assert mass_within(local, 8) > 0.4


def test_neighbours_correlate_as_a_gaussian_of_their_distance():
    k = from_synthetic(SyntheticSpec(n=2000, heads=8)).k.double()
    correlation = [float((k[:, lag:] * k[:, : 2000 - lag]).mean() / k.square().mean()) for lag in (2, 8, 30)]
    # 0.8 exp(-lag² / (4 · 4²)): a Gaussian of standard deviation 4 correlated with itself, times the share without
    # noise.
    expected = [0.8 * math.exp(-(lag**2) / 64) for lag in (2, 8, 30)]
    assert correlation == pytest.approx(expected, abs=0.03)


def test_periodic_attention_is_on_multiples_of_sixteen():
    matrix = weights(SyntheticSpec(kind="periodic", n=160))
    position = torch.arange(160)
    alike = (position[:, None] - position) % 16 == 0
    assert float((matrix * alike).sum(-1).mean()) > 0.5
    assert mass_within(matrix, 8) < 0.2


def test_heavy_tail_has_larger_outliers_than_gaussian():
    def largest(key):
        norm = from_synthetic(SyntheticSpec(kind=key, n=500)).k.norm(dim=-1)
        return float(norm.max() / norm.median())

    assert largest("gaussian") < 2
    assert largest("heavy_tail") > 4


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ("gaussian", "needle")])
def test_values_are_predictable_from_the_keys(key):
    qkv = from_synthetic(SyntheticSpec(kind=key, n=400, d=8, heads=2))
    k, v = (x.double() / x.double().norm(dim=-1, keepdim=True) for x in (qkv.k, qkv.v))
    fitted = k @ torch.linalg.lstsq(k, v).solution
    explained = 1 - float((v - fitted).square().sum() / v.square().sum())
    assert explained > 0.5


def test_gaussian_values_are_not_predictable_from_the_keys():
    qkv = from_synthetic(SyntheticSpec(kind="gaussian", n=400, d=8, heads=2))
    fitted = qkv.k @ torch.linalg.lstsq(qkv.k, qkv.v).solution
    assert float((qkv.v - fitted).square().sum() / qkv.v.square().sum()) > 0.9


@pytest.mark.parametrize("d", [1, 2, 5, 32])
def test_rotary_products_depend_only_on_the_distance(d):
    q, k = torch.randn(2, 1, d, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    product = rotary(q.expand(50, d)) @ rotary(k.expand(50, d)).mT
    for offset in range(-49, 50):
        diagonal = product.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-9)
    assert torch.allclose(product[0, 0], (q @ k.mT)[0, 0])
    assert d == 1 or float(product.std()) > 0.01


def test_rotary_rotates_pairs_by_the_angles_of_the_paper():
    x = torch.randn(7, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = torch.view_as_complex(x.reshape(7, 3, 2))
    angle = torch.arange(7)[:, None] * 10_000.0 ** (-2 * torch.arange(3, dtype=torch.float64) / 6)
    expected = torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).reshape(7, 6)
    torch.testing.assert_close(rotary(x), expected)


def test_rope_makes_attention_depend_on_position():
    plain, rotated = (from_synthetic(SyntheticSpec(kind="gaussian", n=20, rope=rope)) for rope in (False, True))
    assert torch.allclose(plain.k.norm(dim=-1), rotated.k.norm(dim=-1), atol=1e-4)
    assert torch.allclose(plain.k[:, 0], rotated.k[:, 0], atol=1e-6)
    assert not torch.allclose(plain.k[:, 5], rotated.k[:, 5], atol=0.1)


def test_the_causal_setting_is_passed_to_the_record():
    assert from_synthetic(SyntheticSpec(n=3, causal=True)).causal
    assert not from_synthetic(SyntheticSpec(n=3)).causal


def test_numbers_of_numpy_make_the_same_spec_as_those_of_python():
    made = SyntheticSpec(n=np.int64(8), d=np.int32(4), sharpness=np.float64(2.0), seed=np.uint8(3), rope=np.True_)
    assert repr(made) == repr(SyntheticSpec(n=8, d=4, sharpness=2.0, seed=3, rope=True))
    assert from_synthetic(made).n == 8


def test_seeds_beyond_32_bits_give_numbers_of_their_own():
    def drawn(seed):
        return from_synthetic(SyntheticSpec(kind="gaussian", n=8, d=4, heads=1, seed=seed)).v

    assert not any(torch.equal(drawn(2**32 + seed), drawn(seed)) for seed in range(3))
    v = torch.randn(3, 1, 8, 4, generator=torch.Generator().manual_seed(2**32 - 1))[2]
    assert torch.equal(drawn(2**32 - 1), v / v.square().mean().sqrt())


def test_default_kind_is_structured_and_first():
    assert SyntheticSpec().kind == KINDS[0].key != "gaussian"
    assert len(set(KEYS)) == len(KEYS) == 8
    assert all(kind.title and kind.summary.endswith((".", "?")) for kind in KINDS)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "neddle"}, "Did you mean 'needle'?"),
        ({"n": 0}, "n is 0. Choose a whole number from 1 to"),
        ({"n": 65_537}, "n is 65537"),
        ({"n": 2.5}, "n is 2.5"),
        ({"n": True}, "n is True"),
        ({"d": 0}, "d is 0"),
        ({"d": 257}, "d is 257"),
        ({"heads": 33}, "heads is 33"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "seed is"),
        ({"sharpness": -0.1}, "sharpness is -0.1. Choose a number from 0 to 1000"),
        ({"sharpness": math.nan}, "sharpness is nan"),
        ({"sharpness": math.inf}, "sharpness is inf"),
        ({"n": 65_536, "d": 64, "heads": 32}, "the product is at most"),
    ],
)
def test_invalid_settings_are_refused_with_one_sentence(wrong, words):
    with pytest.raises(InputError) as error:
        from_synthetic(SyntheticSpec(**wrong))
    assert words in str(error.value)
    assert str(error.value).endswith((".", "?"))


def test_hosted_servers_allow_fewer_tokens(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert from_synthetic(SyntheticSpec(n=current().synthetic_tokens, d=2, heads=1)).n == current().synthetic_tokens
    with pytest.raises(InputError, match="from 1 to 16384"):
        from_synthetic(SyntheticSpec(n=20_000, d=2, heads=1))


def test_sharpness_zero_gives_uniform_attention():
    matrix = weights(SyntheticSpec(n=9, sharpness=0.0))
    torch.testing.assert_close(matrix, torch.full_like(matrix, 1 / 9))
