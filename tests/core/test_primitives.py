"""Tests of the pairs that each primitive allows, and of the stated number of pairs."""

import ast
import re
from operator import add, mul, sub, truediv

import pytest
import torch
from contract import inputs
from torch import Tensor

import attention_core as ac
from attention_core.attention import Attention
from attention_core.variant import Variant

NAMED = [v for v in ac.all_variants() if v.primitives is not None]


def test_every_pattern_names_its_primitives():
    assert {v.key for v in NAMED} == {v.key for v in ac.all_variants() if v.mask or v.pattern}


def test_each_primitive_allows_its_pairs():
    q, k, _ = inputs(40)
    i, j = torch.meshgrid(torch.arange(40), torch.arange(40), indexing="ij")

    def parts(key: str, **settings: object) -> dict[str, Tensor]:
        a = ac.get(key, **settings)
        return a.variant.primitives(q, k, a.params, causal=False)

    near = (i - j).abs()
    strided = parts("sparse", window=3, stride=5)
    assert torch.equal(strided["window"], near <= 3)
    assert torch.equal(strided["stride"], near % 5 == 0)
    fixed = parts("sparse", pattern="fixed", stride=5, summary=2)
    assert torch.equal(fixed["block"], i // 5 == j // 5)
    assert torch.equal(fixed["summary"], j % 5 >= 3)
    assert torch.equal(parts("longformer", global_tokens=2)["global"], (i < 2) | (j < 2))
    assert torch.equal(parts("sink", sinks=3)["sink"], j < 3)
    assert parts("bigbird", random_keys=2, window=1)["random"].sum(-1).max() == 2


def test_reformer_primitives_match_the_buckets_of_its_anatomy():
    q, k, v = inputs(128)
    a = ac.get("reformer", rounds=3)
    inside = a.variant.anatomy(q, k, v, a.params, causal=False)
    buckets = inside["buckets"]
    shared = (buckets[..., :, None] == buckets[..., None, :]).any(-3) & ~torch.eye(128, dtype=torch.bool)
    parts = a.variant.primitives(q, k, a.params, causal=False)
    assert not (parts["bucket"] & ~shared).any()
    assert not (parts["chunk"] & shared).any()
    assert torch.equal(inside["missed"] | parts["bucket"], shared)


SYMBOLS = {
    "b": "block",
    "m": "blocks",
    "w": "window",
    "r": "stride",
    "g": "global_tokens",
    "ρ": "random_keys",
    "s": "sinks",
    "k": "k",
    "κ": "keep",
}


def evaluate_formula(formula: str, known: dict[str, float]) -> float:
    """Return the value of a formula such as ``n (2 w + 1)``."""
    text = re.sub(r"(?<=[\w)])\s+(?=[\w(])", " * ", formula.replace("²", " ** 2"))

    def of(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            act = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.Pow: pow}[type(node.op)]
            return act(of(node.left), of(node.right))
        if isinstance(node, ast.Constant):
            return node.value
        assert node.id in known, f"SYMBOLS does not name the setting that {node.id} means"
        return known[node.id]

    return of(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize("variant", [v for v in NAMED if v.pairs], ids=lambda v: v.key)
def test_the_stated_pair_count_approximates_the_counted_pairs(variant: Variant):
    n, a = 1024, Attention(variant, variant.params())
    q, k, _ = inputs(n, lead=(1,))
    seen = a.mask(n) if variant.mask else variant.pattern(q, k, a.params, causal=False)
    known = {sign: getattr(a.params, name) for sign, name in SYMBOLS.items() if hasattr(a.params, name)}
    assert evaluate_formula(variant.pairs, {"n": n, **known}) == pytest.approx(int(seen.sum()), rel=0.08)
