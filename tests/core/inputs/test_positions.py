"""Tests of positions: RoPE equals the rotation of transformers, and ALiBi equals the bias of the ALiBi variant."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as rotate_neighbours
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotate_halves

import attention_core as ac
from attention_core.errors import InputError
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource, from_synthetic, to_npz
from attention_core.inputs.positions import (
    ALIBI,
    ALREADY_APPLIED,
    NONE,
    NOTHING_TO_REMOVE,
    OWN,
    ROPE,
    Rope,
    add_alibi,
    remove_alibi,
    with_positions,
)

TEXT = "The keys that the boy had lost lay on the old piano."


def angles(n, d, base):
    """Return the angles of RoPE's article, ``[n, d / 2]``."""
    speeds = torch.tensor([base ** (-2 * i / d) for i in range(d // 2)], dtype=torch.float64)
    return torch.arange(n, dtype=torch.float64).outer(speeds)


def rotated_by_transformers(x, rope):
    """Return the rotation of halves as in Llama, or of neighbours as in GPT-J."""
    angle = angles(*x.shape[-2:], rope.base)
    if rope.halves:
        cos, sin = (each.repeat(1, 2)[None] for each in (angle.cos(), angle.sin()))
        return rotate_halves(x[None], x[None], cos, sin)[0][0]
    # GPT-J's layout is [batch, tokens, heads, size].
    return rotate_neighbours(x.transpose(0, 1)[None], angle.sin()[None], angle.cos()[None])[0].transpose(0, 1)


ropes = st.builds(Rope, base=st.sampled_from([100.0, 10_000.0, 500_000.0]), halves=st.booleans())
sizes = {"n": st.integers(1, 40), "half": st.integers(1, 8), "seed": st.integers(0, 99)}


def drawn(n, d, seed):
    return torch.randn(2, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_rotation_in_inference_mode_or_on_another_default_device_does_not_break_later_ones():
    x = drawn(23, 10, 0)
    with torch.inference_mode():
        first = Rope().rotate(x)
    assert torch.equal(Rope().rotate(x.requires_grad_()).detach(), first)
    with torch.device("meta"):
        assert torch.equal(Rope().rotate(x[:, :22]).detach(), first[:, :22])
    assert torch.equal(Rope().rotate(x[:, :22]).detach(), first[:, :22])


@given(**sizes, rope=ropes)
def test_both_rotations_equal_those_of_transformers_and_are_invertible(n, half, seed, rope):
    x = drawn(n, 2 * half, seed)
    rotated = rope.rotate(x)
    torch.testing.assert_close(rotated, rotated_by_transformers(x, rope), rtol=0, atol=1e-12)
    torch.testing.assert_close(rope.rotate(rotated, inverse=True), x, rtol=0, atol=1e-12)
    torch.testing.assert_close(rotated.norm(dim=-1), x.norm(dim=-1))


@given(**sizes, rope=ropes, by=st.integers(1, 50))
def test_rotated_products_depend_only_on_the_distance(n, half, seed, rope, by):
    q, k = drawn(n, 2 * half, seed), drawn(n, 2 * half, seed + 1)
    # The same tokens, after ``by`` other tokens.
    later_q, later_k = (rope.rotate(torch.cat([x.new_zeros(2, by, 2 * half), x], -2))[:, by:] for x in (q, k))
    torch.testing.assert_close(later_q @ later_k.mT, rope.rotate(q) @ rope.rotate(k).mT, rtol=0, atol=1e-10)


def test_smollm2_rotates_as_transformers_and_its_rotation_can_be_removed():
    own, plain = TextSource(TEXT, "smollm2", 3), TextSource(TEXT, "smollm2", 3, positions=NONE)
    assert (own.rope, plain.rope, plain.own_rope) == (own.own_rope, None, own.own_rope)
    recorded, without = own.load(), plain.load()
    assert not torch.allclose(recorded.q, without.q, atol=0.1)
    cos, sin = LlamaRotaryEmbedding(ac.inputs.models.load("smollm2").model.config)(
        without.q, torch.arange(without.n)[None]
    )
    q, k = rotate_halves(without.q[None], without.k[None], cos, sin)
    torch.testing.assert_close(q[0], recorded.q, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(k[0], recorded.k, rtol=1e-4, atol=1e-4)
    assert torch.equal(without.v, recorded.v)
    assert without.notices == recorded.notices


def test_rope_is_added_to_every_layer_and_length_of_minilm():
    source = TextSource(TEXT, "minilm", 2, positions=ROPE)
    assert source.rope == Rope()
    found, own = source.load(), TextSource(TEXT, "minilm", 2).load()
    torch.testing.assert_close(found.q.double(), rotated_by_transformers(own.q.double(), Rope()), rtol=1e-6, atol=1e-6)
    layers = source.layers(lambda source, tokens: source.load(tokens))
    assert [len(layers), sum(1 for layer in layers)] == 2 * [source.layer_count]
    assert torch.equal(layers[2].q, found.q)
    assert torch.equal(source.at_layer(4).load().k, layers[4].k)
    assert source.at_length(5, 9, lambda source, tokens: source.load(tokens)).n == 5


def test_unnecessary_position_changes_keep_the_record_and_add_a_notice():
    qkv = from_synthetic(SyntheticSpec(n=9, d=4))
    rope = Rope(halves=True)
    assert with_positions(qkv, None, OWN) is qkv
    assert with_positions(qkv, rope, OWN) is qkv
    for own, wanted, notice in ((None, NONE, NOTHING_TO_REMOVE), (rope, ROPE, ALREADY_APPLIED)):
        unchanged = with_positions(qkv, own, wanted)
        assert (unchanged.q is qkv.q, unchanged.k is qkv.k, unchanged.notices) == (True, True, (notice,))
    for own, wanted in ((None, ROPE), (rope, NONE)):
        assert with_positions(qkv, own, wanted).notices == ()


@pytest.mark.parametrize("d", [1, 3, 33])
def test_an_odd_head_size_keeps_its_last_coordinate_with_a_notice(d):
    qkv = from_synthetic(SyntheticSpec(n=9, d=d))
    rotated = with_positions(qkv, None, ROPE)
    assert torch.equal(rotated.q[..., -1], qkv.q[..., -1])
    assert (rotated.q[:, 1:, : d - 1] != qkv.q[:, 1:, : d - 1]).all()
    assert [str(notice) for notice in rotated.notices] == [
        f"RoPE rotates pairs of coordinates. The head size {d} is odd, so the last coordinate is unchanged."
    ]


def test_unknown_settings_and_rotations_that_cannot_be_removed_raise():
    qkv = from_synthetic(SyntheticSpec(n=9, d=4))
    with pytest.raises(InputError, match=r"so RoPE cannot be removed\. Set “Positions” to its default, “original”"):
        with_positions(qkv, Rope(base=None, halves=True), NONE)
    with pytest.raises(InputError, match=r"The setting 'ropes' for positions does not exist\. Did you mean 'rope'\?"):
        with_positions(qkv, None, "ropes")


def test_rope_is_removed_from_a_synthetic_sequence_for_every_seed():
    spec = SyntheticSpec(n=12, d=6, heads=2, rope=True)
    source = SyntheticSource(spec, positions=NONE)
    made = SyntheticSource(spec).load()
    torch.testing.assert_close(with_positions(source.load(), None, ROPE).q, made.q, rtol=1e-5, atol=1e-6)
    assert [seeded.positions for _seed, seeded in source.reseeded(3)] == [NONE] * 3
    assert source.load(7).n == 7


SOURCES = [
    TextSource("a b", "minilm", 1, positions=ROPE),
    SyntheticSource(SyntheticSpec(n=12, d=6, heads=2), positions=ROPE),
]


@pytest.mark.parametrize("source", SOURCES)
def test_the_code_of_a_source_recreates_it_with_its_positions(source):
    assert eval(source.code, {"ac": ac}) == source
    plain = dataclasses.replace(source, positions=OWN)
    assert plain != source
    assert repr(plain) != repr(source)
    assert "positions" not in repr(plain)


def test_an_uploaded_file_is_assumed_to_have_no_rope(tmp_path, monkeypatch):
    data = to_npz(from_synthetic(SyntheticSpec(n=12, d=6, heads=2)))
    own, rotated = UploadSource.of("a.npz", data), UploadSource.of("a.npz", data, positions=ROPE)
    assert own != rotated
    assert rotated.rope == Rope()
    assert torch.equal(rotated.load().q, with_positions(own.load(), None, ROPE).q)
    assert torch.equal(rotated.load(5).q, rotated.load().q[:, :5])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "your-file.npz").write_bytes(data)
    assert eval(rotated.code, {"ac": ac}) == rotated


@given(**sizes, heads=st.integers(1, 8))
def test_softmax_with_alibi_coordinates_equals_the_alibi_variant(n, half, seed, heads):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, heads, n, half, generator=generator, dtype=torch.float64)
    wider_q, wider_k = add_alibi(q, k)
    assert wider_q.shape == wider_k.shape == (heads, n, half + 2)
    scores = wider_q @ wider_k.mT / (half + 2) ** 0.5
    softmax = ac.get("softmax")
    weights, out = softmax.weights(wider_q, wider_k, causal=True), softmax.attend(wider_q, wider_k, v, causal=True)
    for head in range(heads):
        slope = 2 ** (-8 * (head + 1) / heads)
        away = torch.tensor([[slope * (i - j) for j in range(n)] for i in range(n)], dtype=torch.float64)
        torch.testing.assert_close(scores[head], q[head] @ k[head].mT / half**0.5 - away, rtol=0, atol=1e-10)
        alibi = ac.get("alibi", slope=slope)
        torch.testing.assert_close(weights[head], alibi.weights(q[head], k[head], causal=True), rtol=0, atol=1e-6)
        expected = alibi.attend(q[head], k[head], v[head], causal=True)
        torch.testing.assert_close(out[head], expected, rtol=0, atol=1e-6)
    for found, own in zip(remove_alibi(wider_q, wider_k), (q, k), strict=True):
        torch.testing.assert_close(found, own, rtol=0, atol=1e-12)


@pytest.mark.parametrize("key", ["local", "atrous", "sparse", "sink", "longformer", "bigbird"])
def test_alibi_multiplies_and_normalizes_the_weights_of_fixed_patterns(key):
    qkv = from_synthetic(SyntheticSpec(n=50, d=8, heads=4))
    wider, attention = with_positions(qkv, None, ALIBI), ac.get(key)
    away = torch.arange(50)[:, None] - torch.arange(50)
    slopes = torch.tensor([2.0 ** -(2 * h) for h in (1, 2, 3, 4)])[:, None, None]
    expected = attention.weights(qkv.q, qkv.k, causal=True) * torch.exp(-slopes * away.clamp(min=0))
    expected /= expected.sum(-1, keepdim=True)
    torch.testing.assert_close(attention.weights(wider.q, wider.k, causal=True), expected, rtol=1e-4, atol=1e-5)


def test_alibi_replaces_the_rope_of_a_model():
    source = TextSource(TEXT, "smollm2", 3, positions=ALIBI)
    plain = dataclasses.replace(source, positions=NONE).load()
    found = source.load()
    assert source.rope is None
    assert (found.heads, found.q.shape[-1], found.v.shape[-1]) == (plain.heads, 66, 64)
    for each, expected in zip((found.q, found.k), add_alibi(plain.q.double(), plain.k.double()), strict=True):
        torch.testing.assert_close(each, expected.float(), rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="so RoPE cannot be removed"):
        with_positions(plain, Rope(base=None), ALIBI)
