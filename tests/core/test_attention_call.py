"""Tests of ``Attention`` as a callable: torch's argument names, modules, autocast, compilation, help and HTML."""

import base64
import io
import pickle
import pydoc
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

import attention_core as ac
from attention_core.errors import ShapeError
from attention_core.inputs import SyntheticSpec, from_synthetic

QKV = torch.randn(3, 2, 4, 24, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_accepts_the_arguments_of_torch_and_returns_its_result(causal):
    q, k, v = QKV
    expected = F.scaled_dot_product_attention(query=q, key=k, value=v, is_causal=causal)
    softmax = ac.get("softmax")
    assert torch.allclose(softmax(query=q, key=k, value=v, is_causal=causal), expected, atol=1e-5)
    assert torch.allclose(softmax(q, k, v, causal=causal), expected, atol=1e-5)


@pytest.mark.parametrize("lead", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
def test_an_empty_batch_gives_an_empty_output_and_empty_gradients(variant, lead):
    q, k, v = (torch.zeros(*lead, 16, size, requires_grad=True) for size in (8, 8, 3))
    for causal in (False, True)[: 1 if variant.causal_reason else 2]:
        out = ac.get(variant.key).attend(q, k, v, causal=causal)
        assert out.shape == v.shape
        grads = torch.autograd.grad(out.sum(), (q, k, v))
        assert [x.shape for x in grads] == [q.shape, k.shape, v.shape]


def test_numpy_arrays_are_converted_to_tensors_in_all_methods():
    q, k, v = QKV.numpy()
    for attention in (ac.get("softmax"), ac.get("nystrom", landmarks=6), ac.get("mla")):
        torch.testing.assert_close(attention(q, k, v), attention(*QKV))
        torch.testing.assert_close(attention.attend(q, k, v), attention.attend(*QKV))
        torch.testing.assert_close(attention.weights(q, k), attention.weights(*QKV[:2]))
        torch.testing.assert_close(attention.reference(q, k), attention.reference(*QKV[:2]))
        torch.testing.assert_close(attention.values(v), attention.values(QKV[2]))
        if attention.variant.anatomy is not None:
            torch.testing.assert_close(attention.anatomy(q, k, v), attention.anatomy(*QKV))
    softmax, shown = ac.get("softmax"), np.arange(24) < 9
    expected = softmax(*QKV, key_mask=torch.tensor(shown))
    for found in (
        softmax(q, k, v, shown[None]),
        softmax(*QKV, key_mask=shown),
        softmax.attend(q, k, v, key_mask=shown),
    ):
        torch.testing.assert_close(found, expected)
    mask = torch.tensor(shown)
    torch.testing.assert_close(softmax.weights(q, k, key_mask=shown), softmax.weights(*QKV[:2], key_mask=mask))


def test_all_methods_check_their_arguments():
    nystrom, local, (q, k, v) = ac.get("nystrom"), ac.get("local"), QKV
    with pytest.raises(ac.LabError, match="cannot be causal"):
        nystrom.anatomy(q, k, v, causal=True)
    with pytest.raises(ShapeError, match=r"k \(2, 4, 24, 3\)"):
        nystrom.anatomy(q, k[..., :3], v)
    with pytest.raises(ShapeError, match="do not match"):
        ac.get("mla").values(v[0, 0, 0])
    with pytest.raises(ac.LabError, match="as many keys as queries"):
        local.reference(q, k[..., :5, :], causal=True)
    for numbers in ({"n": -5, "d": 8}, {"n": 5, "d": 0}, {"n": 2.5, "d": 8}, {"n": 5, "d": 8, "heads": 0}):
        with pytest.raises(ShapeError, match="whole number of at least 1"):
            local.cost(**numbers)
    for n in (3.5, 0, -3):
        with pytest.raises(ShapeError, match=f"n is {n}. Choose a whole number"):
            local.mask(n)
    assert torch.equal(local.mask(np.int64(3)), local.mask(3))
    assert local.cost(np.int64(3), np.int64(4)) == local.cost(3, 4)


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
def test_vectors_without_channels_are_refused(variant):
    attention, (q, k, v) = ac.get(variant.key), QKV
    for arguments in ((q[..., :0], k[..., :0], v), (q, k, v[..., :0])):
        with pytest.raises(ShapeError, match="at least 1"):
            attention.attend(*arguments)
    with pytest.raises(ShapeError, match="at least 1"):
        attention.weights(q[..., :0], k[..., :0])


@pytest.mark.parametrize(
    ("query_shape", "key_shape"),
    [((5, 8), (5, 8)), ((4, 5, 8), (3, 5, 8)), ((4, 5, 8), (0, 5, 8)), ((2, 5, 8), (5, 8))],
)
def test_heads_that_cannot_be_repeated_are_refused(query_shape, key_shape):
    q, k = torch.zeros(query_shape), torch.zeros(key_shape)
    with pytest.raises(ShapeError, match="enable_gqa cannot repeat"):
        ac.get("softmax")(q, k, k, enable_gqa=True)


def test_tensors_without_values_give_an_output_without_values():
    q, k, v = QKV.to("meta")
    out = ac.get("softmax")(q, k, v)
    assert out.device.type == "meta"
    assert out.shape == v.shape


def test_softmax_accepts_all_arguments_of_torch_in_the_same_order():
    q, k, v = torch.randn(3, 2, 4, 24, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    softmax, few = ac.get("softmax"), [x[:, :2] for x in (k, v)]
    for arguments in ((None, 0.0, True), (torch.arange(24)[None] < 9,), (torch.rand(2, 1, 1, 24) < 0.5,)):
        expected = F.scaled_dot_product_attention(q, k, v, *arguments)
        torch.testing.assert_close(softmax(q, k, v, *arguments), expected)
    settings = {"attn_mask": torch.rand(2, 4, 1, 24) < 0.5, "scale": 0.7, "enable_gqa": True}
    torch.testing.assert_close(softmax(q, *few, **settings), F.scaled_dot_product_attention(q, *few, **settings))
    one = torch.rand(1, 24) < 0.5
    expected = F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0], one)
    torch.testing.assert_close(softmax(q[0, 0], k[0, 0], v[0, 0], one), expected)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"dropout_p": 0.1}, "no dropout"),
        ({"attn_mask": torch.ones(24, 24, dtype=torch.bool)}, r"the shape \(24, 24\)"),
        ({"attn_mask": torch.zeros(1, 24)}, "the type torch.float32"),
        ({"attn_mask": torch.ones(24, dtype=torch.bool)}, r"the shape \(24,\)"),
        ({"attn_mask": torch.ones(4, 1, 24, dtype=torch.bool)}, r"the shape \(4, 1, 24\)"),
        ({"attn_mask": torch.ones(1, 24) > 0, "key_mask": torch.ones(24) > 0}, "both set"),
        ({"attn_mask": torch.ones(1, 24) > 0, "is_causal": True}, "a key mask is not allowed"),
    ],
)
def test_unsupported_arguments_of_torch_are_refused_with_a_reason(settings, reason):
    with pytest.raises(ac.LabError, match=reason):
        ac.get("linear")(*QKV, **settings)


def test_a_non_causal_variant_refuses_both_causal_arguments():
    for name in ("causal", "is_causal"):
        with pytest.raises(ac.LabError, match="cannot be causal"):
            ac.get("nystrom")(*QKV, **{name: True})


class Layer(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        return self.attention(*self.project(x).chunk(3, -1))


@pytest.mark.parametrize("key", ["softmax", "local", "linear", "nystrom", "deltanet", "reformer"])
def test_an_attention_trains_in_a_module_under_autocast(key):
    torch.manual_seed(0)
    layer, x = Layer(ac.get(key)), torch.randn(2, 24, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    q, k, v = (
        y.bfloat16()
        for y in nn.functional.linear(x.bfloat16(), *(p.bfloat16() for p in layer.project.parameters())).chunk(3, -1)
    )
    assert torch.equal(out, layer.attention.attend(q, k, v))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wide = [y.float() for y in (q, k, v)]
        assert torch.equal(out, layer.attention.attend(*wide))
        assert torch.equal(layer.attention.weights(*wide[:2]), layer.attention.weights(q, k))
        assert torch.equal(layer.attention.reference(*wide[:2]), layer.attention.reference(q, k))
    assert layer.attention.weights(q, k).dtype == torch.bfloat16
    out.float().square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in layer.parameters())


def test_autocast_converts_inputs_of_different_types_as_torch_does():
    q, k, v = QKV
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = ac.get("softmax")(q.bfloat16(), k, v)
        assert mixed.dtype == F.scaled_dot_product_attention(q.bfloat16(), k, v).dtype == torch.bfloat16
        doubles = QKV.double()
        found = ac.get("nystrom")(*doubles)
        assert found.dtype == F.scaled_dot_product_attention(*doubles).dtype == torch.float64
    with pytest.raises(ac.LabError, match="differ"):
        ac.get("softmax")(q.bfloat16(), k, v)


@pytest.mark.parametrize("key", ["softmax", "local", "linear"])
def test_an_attention_compiles_into_one_graph(key):
    attention = ac.get(key)
    compiled = torch.compile(lambda q, k, v: attention(q, k, v), backend="eager", fullgraph=True)
    assert torch.allclose(compiled(*QKV), attention(*QKV), atol=1e-5)


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda variant: variant.key)
def test_help_shows_formula_settings_with_bounds_cost_and_source(variant):
    attention = ac.get(variant.key)
    lines = attention.help().splitlines()
    text = " ".join(" ".join(lines).split())
    assert lines[0].startswith(repr(attention))
    assert variant.formula in "\n".join(lines)
    assert variant.complexity in text
    assert f"{attention.cost(1024, 64).multiply_adds:,} multiply-adds" in text
    assert variant.source.url in text
    for setting in variant.params.settings():
        allowed = setting.choices or ((setting.low, setting.high) if setting.kind in ("int", "float") else ())
        start = text.index(f"{setting.name} = {setting.default!r} (")
        assert all(str(each) in text[start : text.index(")", start)] for each in allowed)
        assert " ".join(setting.help.split()) in text
    assert ("Can be causal." in text) == (variant.causal_reason is None)


def test_python_help_shows_the_variant_and_the_class_keeps_its_docstring():
    nystrom = ac.get("nystrom", landmarks=7)
    shown = pydoc.plain(pydoc.render_doc(nystrom))
    assert all(line.strip() in shown for line in nystrom.help().splitlines())
    assert ac.Attention.__doc__.startswith("A variant with its settings")
    assert pickle.loads(pickle.dumps(nystrom)) == nystrom


def test_a_repr_is_one_line_in_the_form_of_a_call():
    assert repr(ac.get("deltanet")) == "deltanet(keys='unit', strength=1.0)"
    assert repr(ac.get("local", window=3)) == "local(window=3, columns=0)"


def test_html_escapes_every_word():
    assert (
        ac.get("local", window=3)._repr_html_().startswith("<p><code>local(window=3, columns=0)</code> <b>Local</b>. ")
    )
    assert "feature_map=&#x27;elu+1&#x27;" in ac.get("linear")._repr_html_()


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda variant: variant.key)
def test_html_has_a_picture_of_the_matrix_and_the_cost(variant):
    attention = ac.get(variant.key)
    html = attention._repr_html_()
    assert f"{attention.cost(1024, 64).multiply_adds:,} multiply-adds" in html
    qkv = from_synthetic(SyntheticSpec(kind="locally_correlated", n=64, heads=1, sharpness=2.0))
    weights = attention.weights(qkv.q, qkv.k)[0].numpy()
    data = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1])
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    assert pixels.shape == (64, 64, 3)
    assert (pixels[weights == 0] == 255).all()
    red, _, blue = pixels[np.unravel_index(np.abs(weights).argmax(), weights.shape)]
    assert (red > blue) == (weights.flat[np.abs(weights).argmax()] < 0)
