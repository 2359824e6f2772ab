"""Tests of RoPE by distance: closed forms, the bound, and models whose queries and keys are already rotated."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.experiments import distance
from attention_core.experiments.distance import PLAIN, ROTATED
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource, from_upload, to_npz
from attention_core.inputs.models import minilm, smollm2

TEXT = "The old bridge over the river was closed, so we walked along the bank to the ferry."


def rotated(x, base=10_000.0):
    """Return the paper's rotation of x, computed coordinate by coordinate."""
    n, d = x.shape
    out = np.array(x, dtype=float)
    for t in range(n):
        for i in range(d // 2):
            angle = t * base ** (-2 * i / (d - d % 2))
            c, s = math.cos(angle), math.sin(angle)
            a, b = x[t, 2 * i], x[t, 2 * i + 1]
            out[t, 2 * i : 2 * i + 2] = a * c - b * s, a * s + b * c
    return out


def softmax(logits, *, causal):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(-1, keepdims=True)


def measured(source, n, **how):
    return [row for task in distance.tasks(source, n=n, **how) for row in distance.run(task)]


def by_distance(rows, form, name, head=0):
    return {
        row.distance: getattr(row, name)
        for row in rows
        if (row.form, row.head) == (form, head) and getattr(row, name) is not None
    }


def upload(q, k):
    arrays = {name: np.asarray(x, np.float32)[None] for name, x in (("q", q), ("k", k), ("v", k))}
    record = ac.inputs.QKV(
        **{name: torch.tensor(x) for name, x in arrays.items()},
        tokens=("a",) * len(q),
        special=(False,) * len(q),
        groups=tuple(range(len(q))),
        causal=False,
        scale=q.shape[-1] ** -0.5,
        origin="test",
        total_tokens=len(q),
    )
    return UploadSource.of("arrays.npz", to_npz(record))


@pytest.mark.parametrize("d", [2, 8, 32])
def test_logits_of_equal_queries_and_keys_equal_the_mean_cosine(d):
    """Check the closed form: q = k = 1 everywhere gives Σ cos(Δ θ_i) · 2 / √d."""
    n = 40
    rows = measured(upload(np.ones((n, d)), np.ones((n, d))), n)
    logits = by_distance(rows, ROTATED, "logit")
    cosines = distance.rope_decay(distance.distances(n), d)["cosines"]
    for (x, logit), cosine in zip(logits.items(), cosines, strict=True):
        wanted = 2 / d * sum(math.cos(x * 10_000 ** (-2 * i / d)) for i in range(d // 2))
        assert cosine == pytest.approx(wanted, abs=1e-12)
        assert logit == pytest.approx(wanted * math.sqrt(d), abs=1e-6)
        assert by_distance(rows, ROTATED, "size")[x] == pytest.approx(abs(wanted) * math.sqrt(d), abs=1e-6)
    plain = by_distance(rows, PLAIN, "logit")
    assert all(plain[x] == pytest.approx(math.sqrt(d)) for x in distance.distances(n))


@pytest.mark.parametrize(("d", "base"), [(2, 1e4), (7, 1e4), (128, 1e4), (64, 1e5)])
def test_partial_sums_equal_their_formula(d, base):
    for x in (0, 1, 50, 256):
        unit = np.exp(1j * x * base ** (-2 * np.arange(d // 2) / (d - d % 2)))
        wanted = [abs(unit[: j + 1].sum()) for j in range(d // 2)]
        np.testing.assert_allclose(distance.partial_sums(x, d, base), wanted, atol=1e-10)
    assert distance.rope_decay([0, 256], d, base)["sums"][0] == 1


def test_the_bound_decays_as_in_the_figure_of_the_article():
    """Check the article's figure: d = 128, distances to 256, from 32.5 to less than a third of it, not monotonic."""
    means = [float(distance.partial_sums(x, 128).mean()) for x in range(257)]
    assert means[0] == 32.5
    assert means[256] < 11
    assert max(means) == means[0]
    assert any(later > earlier for earlier, later in pairwise(means))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(2, 14), st.booleans())
def test_all_measures_equal_their_formulas_and_logits_stay_within_the_bound(seed, d, n, causal):
    numbers = np.random.default_rng(seed)
    q, k = numbers.standard_normal((2, n, d))
    rows = measured(upload(q, k), n, causal=causal)
    q, k = (x.astype(np.float32).astype(float) for x in (q, k))
    forms = {PLAIN: (q, k), ROTATED: (rotated(q), rotated(k))}
    for form, (a, b) in forms.items():
        logits = a @ b.T / math.sqrt(d)
        weights = softmax(logits, causal=causal)
        for x in distance.distances(n):
            pairs = [(i, j) for i in range(n) for j in range(n) if (i - j == x if causal else abs(i - j) == x)]
            assert by_distance(rows, form, "weight")[x] == pytest.approx(np.mean([weights[p] for p in pairs]), abs=1e-9)
            assert by_distance(rows, form, "logit")[x] == pytest.approx(np.mean([logits[p] for p in pairs]), abs=1e-9)
            assert by_distance(rows, form, "size")[x] == pytest.approx(
                np.mean([abs(logits[p]) for p in pairs]), abs=1e-9
            )
        entropies = [-sum(w * math.log(w) for w in row if w > 0) for row in weights]
        assert by_distance(rows, form, "entropy")[None] == pytest.approx(np.mean(entropies), abs=1e-9)
    bounds, sizes = by_distance(rows, ROTATED, "bound"), by_distance(rows, ROTATED, "size")
    assert all(sizes[x] <= bounds[x] + 1e-9 for x in distance.distances(n))
    assert all(row.bound is None for row in rows if row.form == PLAIN)


@pytest.mark.parametrize(("causal", "ends"), [(True, ((4, 0), (5, 1))), (False, ((4, 0), (5, 1), (0, 4), (1, 5)))])
def test_the_bound_equals_its_formula(causal, ends):
    numbers = np.random.default_rng(3)
    q, k = numbers.standard_normal((2, 6, 4)).astype(np.float32).astype(float)
    bound = by_distance(measured(upload(q, k), 6, causal=causal), ROTATED, "bound")[4]
    theta, found = 10_000.0 ** (-2 * np.arange(2) / 4), []
    unit = np.exp(4j * theta)
    for i, j in ends:
        h = (q[i, ::2] + 1j * q[i, 1::2]) * (k[j, ::2] - 1j * k[j, 1::2])
        largest = max(abs(h[1] - h[0]), abs(h[1]))
        found.append(largest * (abs(unit[0]) + abs(unit.sum())) / 2)
    assert bound == pytest.approx(np.mean(found), rel=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "clustered"])
def test_a_synthetic_input_has_equal_forms_with_and_without_rope(kind):
    spec = SyntheticSpec(kind=kind, n=20, d=6, heads=2)
    for rope in (False, True):
        source = SyntheticSource(SyntheticSpec(**{**vars(spec), "rope": rope}))
        qkv = source.load()
        found = distance.forms(qkv, source)
        recorded = found[ROTATED if rope else PLAIN]
        torch.testing.assert_close(recorded[0].float(), qkv.q)
        for plain, with_rope in zip(found[PLAIN], found[ROTATED], strict=True):
            np.testing.assert_allclose([rotated(head) for head in plain.numpy()], with_rope, atol=1e-9)


def test_smollm2_without_rotation_equals_its_projections():
    loaded = ac.inputs.models.load("smollm2")
    assert loaded.info.rotary
    assert loaded.model.config.rope_parameters["rope_theta"] == loaded.info.rotary_base
    assert loaded.model.config.rope_parameters["rope_type"] == "default"
    source = TextSource(TEXT, "smollm2", 3)
    projected, attention = {}, loaded.model.layers[3].self_attn

    def keep(name):
        return lambda module, given, out: projected.__setitem__(name, out[0])

    handles = [getattr(attention, f"{name}_proj").register_forward_hook(keep(name)) for name in "qk"]
    try:
        ids = loaded.tokenizer.encode(TEXT).ids
        with torch.no_grad():
            loaded.model(input_ids=torch.tensor([ids]))
    finally:
        for handle in handles:
            handle.remove()
    found = distance.forms(source.load(), source)
    for x, name, groups in zip(found[PLAIN], "qk", (1, 3), strict=True):
        heads = projected[name].unflatten(-1, (-1, 64)).transpose(0, 1).repeat_interleave(groups, 0)
        halves = x.unflatten(-1, (32, 2)).transpose(-2, -1).flatten(-2)
        torch.testing.assert_close(halves.float(), heads, rtol=1e-4, atol=1e-4)
    own = source.load()
    logits = found[ROTATED][0] @ found[ROTATED][1].mT
    torch.testing.assert_close(logits.float(), own.q @ own.k.mT, rtol=1e-4, atol=1e-3)


def test_minilm_is_also_measured_rotated_and_an_unknown_rotation_stays(monkeypatch):
    source = TextSource(TEXT, "minilm", 1)
    assert source.rope is None
    assert set(distance.forms(source.load(), source)) == {PLAIN, ROTATED}
    other = TextSource(TEXT, "smollm2", 1)
    known = ac.inputs.models.load("smollm2")
    unknown = replace(known, info=replace(known.info, rotary_base=None))
    qkv = other.load()
    monkeypatch.setattr(ac.inputs.models, "load", lambda name: unknown)
    assert other.rope
    assert set(distance.forms(qkv, other)) == {ROTATED}
    [task] = distance.tasks(other, n=qkv.n, causal=True)
    rows = distance.run(task, load=lambda source, tokens: qkv)
    assert {row.form for row in rows} == {ROTATED}
    assert all(row.bound is None for row in rows)


def test_model_infos_state_the_rotary_base():
    assert (minilm.INFO.rotary, minilm.INFO.rotary_base) == (False, None)
    assert (smollm2.INFO.rotary, smollm2.INFO.rotary_base) == (True, 100_000)


@pytest.mark.parametrize(("n", "last"), [(1, 0), (2, 1), (5, 3), (40, 30), (1024, 768)])
def test_distances_increase_up_to_three_quarters_of_the_length(n, last):
    found = distance.distances(n)
    assert (found[0], found[-1]) == (0, last)
    assert list(found) == sorted(set(found))
    assert set(range(min(last, 32) + 1)) <= set(found)
    assert len(found) < 90


def test_each_further_seed_gives_another_sequence():
    source = SyntheticSource(SyntheticSpec(n=12, d=4, heads=1, seed=5))
    rows = measured(source, 12, seeds=2)
    assert {row.seed for row in rows} == {5, 6}
    one = measured(SyntheticSource(SyntheticSpec(n=12, d=4, heads=1, seed=6)), 12)
    assert [row for row in rows if row.seed == 6] == one


def test_single_tokens_and_single_coordinates_are_measured():
    rows = measured(SyntheticSource(SyntheticSpec(n=1, d=4, heads=1)), 1)
    assert [row.distance for row in rows] == [None, 0] * 2
    qkv = from_upload(upload(np.ones((4, 1)), np.ones((4, 1))).data, "x.npz")
    assert qkv.q.shape[-1] == 1
    rows = measured(upload(np.ones((4, 1)), np.ones((4, 1))), 4)
    assert by_distance(rows, ROTATED, "logit") == by_distance(rows, PLAIN, "logit")
    assert by_distance(rows, ROTATED, "bound")[1] == pytest.approx(1)
    assert distance.rope_decay([0, 5], 1) == {"sums": [1, 1], "cosines": [1, 1]}
