"""Linear attention's story: its map, its kernel, and the sum that serves every query."""

import math

import pytest
import torch
from driver import charts, curves
from stories import head, open_step, said, spoken

import attention_core as ac


def test_feature_maps_are_drawn_and_the_chosen_one_stands_out():
    at = open_step(ac.get("linear", feature_map="relu"), 1)
    figure = charts(at)[-1]
    dashes = {
        t["name"]: t["line"]["dash"]
        for t in figure["data"]
        if t.get("name") in {"elu+1", "relu", "exp"} or "softmax" in t.get("name", "")
    }
    assert dashes == {"elu+1": "dot", "relu": "solid", "softmax × 8, others 0": "dot", "exp": "dot"}
    x, y = curves(at)["elu+1"]
    assert y == pytest.approx([a + 1 if a > 0 else math.exp(a) for a in x])
    q, k, _ = head()
    [share] = said(at, r"([\d.]+)% of the entries of queries and keys are negative")
    assert share == pytest.approx(100 * float((torch.stack([q, k]) < 0).double().mean()), abs=0.51)
    middle = torch.stack([q, k]).quantile(torch.tensor([0.25, 0.75]).double()).tolist()
    assert curves(at)["middle half of the entries"][0] == pytest.approx(middle)
    assert said(at, r"lies between (\S+) and (\S+) \(shaded\)") == pytest.approx(middle, abs=0.051)


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_is_drawn_beside_the_exponential(causal):
    at = open_step(ac.get("linear"), 3, causal=causal)
    q, k, _ = head()
    allowed = torch.ones(24, 24, dtype=torch.bool).tril() if causal else torch.ones(24, 24, dtype=torch.bool)
    own, full = (ac.get(key).weights(q, k, causal=causal)[allowed] for key in ("linear", "softmax"))
    x, y = curves(at)["pairs of tokens"]
    assert x == pytest.approx(full.sort().values.tolist(), rel=1e-4)
    [middle] = said(at, r"median pair gets (\S+) times")
    assert middle == pytest.approx(float((own / full).quantile(0.5)), rel=0.06)
    assert sorted(y) == pytest.approx(own.sort().values.tolist(), rel=1e-4)


@pytest.mark.parametrize("n", [3, 24])
def test_the_cheaper_order_is_counted(n):
    at = open_step(ac.get("linear"), 4, n=n)
    own, exact, cheaper = said(at, r"tokens ([\d,]+) multiply-adds instead of ([\d,]+)\. .* from n = (\d+) on")
    # Softmax: 2 n² d. Linear: φ(k)ᵀv and φ(q) times it, n d² each, and the normaliser, n d.
    assert exact == 2 * n * n * 8
    assert own == 2 * n * 64 + n * 8
    assert cheaper == 9
    assert (own <= exact) == (n >= cheaper)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("feature_map", ["elu+1", "exp"])
def test_a_query_reads_its_output_from_the_sum(feature_map, causal):
    attention = ac.get("linear", feature_map=feature_map)
    q, k, v = head()
    outputs = attention.attend(q, k, v, causal=causal)
    at = open_step(attention, 4, causal=causal)
    for query in (23, 5):
        at.selectbox(key="inside.linear.4.query").set_value(query).run()
        assert curves(at)["φ(q)ᵀ S / φ(q)ᵀ z"][1] == pytest.approx(outputs[query].tolist(), rel=1e-4, abs=1e-6)
    if feature_map == "elu+1":
        sums = (torch.nn.functional.elu(k[: 6 if causal else None]) + 1).sum(0)
        assert curves(at, -2)["z = Σ φ(k)"][1] == pytest.approx(sums.tolist(), rel=1e-4)
        assert curves(at, -3)["φ(q)"][1] == pytest.approx((torch.nn.functional.elu(q[5]) + 1).tolist(), rel=1e-4)


def test_the_normaliser_is_one_product_per_query():
    at = open_step(ac.get("linear"), 5)
    q, k, _ = head()
    z = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).sum(0)
    assert curves(at)["normaliser"][1] == pytest.approx(z.tolist(), rel=1e-4)
    assert "up to the factor" not in spoken(at)
    assert "up to the factor" in spoken(open_step(ac.get("linear", feature_map="exp"), 5))
