"""Tests of ``Attention`` as a callable: torch's argument names, modules, autocast, compilation, help and HTML."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attention_core as ac

QKV = torch.randn(3, 2, 4, 24, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_takes_the_arguments_of_torchs_function_and_has_its_result(causal):
    q, k, v = QKV
    expected = F.scaled_dot_product_attention(query=q, key=k, value=v, is_causal=causal)
    softmax = ac.get("softmax")
    assert torch.allclose(softmax(query=q, key=k, value=v, is_causal=causal), expected, atol=1e-5)
    assert torch.allclose(softmax(q, k, v, causal=causal), expected, atol=1e-5)


def test_a_variant_that_is_not_causal_refuses_either_name():
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
def test_it_trains_in_a_module_and_under_autocast(key):
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
    out.float().square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in layer.parameters())


def test_autocast_converts_inputs_of_different_types_as_torch_does():
    q, k, v = QKV
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = ac.get("softmax")(q.bfloat16(), k, v)
        assert mixed.dtype == F.scaled_dot_product_attention(q.bfloat16(), k, v).dtype == torch.bfloat16
    with pytest.raises(ac.LabError, match="differ"):
        ac.get("softmax")(q.bfloat16(), k, v)


@pytest.mark.parametrize("key", ["softmax", "local", "linear"])
def test_it_compiles_into_one_graph(key):
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


def test_a_repr_is_one_line_and_can_be_called():
    assert repr(ac.get("deltanet")) == "deltanet(keys='unit', strength=1.0)"
    assert repr(ac.get("local", window=3)) == "local(window=3, columns=0)"


def test_html_escapes_every_word():
    assert (
        ac.get("local", window=3)._repr_html_().startswith("<p><code>local(window=3, columns=0)</code> <b>Local</b>. ")
    )
    assert "feature_map=&#x27;elu+1&#x27;" in ac.get("linear")._repr_html_()
