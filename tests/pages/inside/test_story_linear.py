"""Tests of linear attention's story: its feature map, its kernel, and the sum shared by all queries."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from driver import charts, lines_of
from stories import data, figures, head, open_step, said, spoken

import attention_core as ac
from pages.inside.stories import linear
from pages.inside.stories.linear import kernel_sentence, line_name, map_sentence, zeros_sentence


def test_feature_maps_are_drawn_and_the_chosen_one_stands_out():
    at = open_step(ac.get("linear", feature_map="relu"), 2)
    figure = charts(at)[-1]
    dashes = {
        t["name"]: t["line"]["dash"]
        for t in figure["data"]
        if t.get("name") in {"elu+1", "relu", "exp"} or "softmax" in t.get("name", "")
    }
    assert dashes == {"elu+1": "dot", "relu": "solid", "8 × first entry of softmax(x, 0, …, 0)": "dot", "exp": "dot"}
    x, y = lines_of(at)["elu+1"]
    assert y == pytest.approx([a + 1 if a > 0 else math.exp(a) for a in x])
    q, k, _ = head()
    middle = torch.stack([q, k]).quantile(torch.tensor([0.25, 0.75]).double()).tolist()
    assert lines_of(at)["middle 50% of the entries"][0] == pytest.approx(middle)


def test_the_chosen_feature_map_is_named_and_compared_with_exp():
    assert line_name("softmax", 32, chosen=False) == "softmax (scaled by 32)"
    assert line_name("softmax", 32, chosen=True) == "softmax (scaled by 32) (chosen)"
    assert line_name("relu", 32, chosen=True) == "relu (chosen)"
    assert map_sentence("elu+1").startswith("For negative entries, elu+1 equals exp.")
    assert map_sentence("relu").startswith("relu sets negative entries to 0.")
    assert map_sentence("exp") == map_sentence("softmax") == ""


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_is_compared_with_the_exponential(causal):
    at = open_step(ac.get("linear"), 4, causal=causal)
    q, k, _ = head()
    allowed = torch.ones(24, 24, dtype=torch.bool).tril() if causal else torch.ones(24, 24, dtype=torch.bool)
    own, full = (ac.get(key).weights(q, k, causal=causal)[allowed] for key in ("linear", "softmax"))
    x, y = lines_of(at)["pairs of tokens"]
    assert x == pytest.approx(full.sort().values.tolist(), rel=1e-4)
    [middle] = said(at, r"The weight of a query–key pair is ([^\s×]+)×")
    assert middle == pytest.approx(float((own / full).quantile(0.5)), rel=0.06)
    assert sorted(y) == pytest.approx(own.sort().values.tolist(), rel=1e-4)


@pytest.mark.parametrize(("n", "share"), [(3, 300), (24, 38)])
def test_the_cheaper_order_is_counted(n, share):
    at = open_step(ac.get("linear"), 6, n=n)
    # Softmax: 2 n² d. Linear: φ(k)ᵀv and φ(q) times it, n d² each, and the normalizer's sum and product, n d each.
    assert said(at, r"needs (\d+)% of softmax's multiply-adds") == (share,)
    at = open_step(ac.get("linear"), 1, again=at, n=n)
    assert said(at, rf"At {n} tokens, Linear needs (\d+)% of softmax's multiply-adds\.") == (share,)
    later = "From 10 tokens on, it needs fewer than softmax."  # at 9 both costs are equal
    assert (later in spoken(at)) == (share > 100)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("feature_map", ["elu+1", "exp"])
def test_a_query_reads_its_output_from_the_sum(feature_map, causal):
    attention = ac.get("linear", feature_map=feature_map)
    q, k, v = head()
    outputs = attention.attend(q, k, v, causal=causal)
    at = open_step(attention, 1, causal=causal)
    for query in (23, 5):
        at.selectbox(key="inside.linear.1.query").set_value(query).run()
        assert lines_of(at)["φ(q)ᵀ S / φ(q)ᵀ z"][1] == pytest.approx(outputs[query].tolist(), rel=1e-4, abs=1e-6)
    if feature_map == "elu+1":
        sums = (torch.nn.functional.elu(k[: 6 if causal else None]) + 1).sum(0)
        assert lines_of(at, -2)["z = Σ φ(k)"][1] == pytest.approx(sums.tolist(), rel=1e-4)
        assert lines_of(at, -3)["φ(q)"][1] == pytest.approx((torch.nn.functional.elu(q[5]) + 1).tolist(), rel=1e-4)


def test_the_normaliser_is_one_product_per_query():
    at = open_step(ac.get("linear"), 5)
    q, k, _ = head()
    z = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).sum(0)
    assert lines_of(at)["normaliser"][1] == pytest.approx(z.tolist(), rel=1e-4)
    assert "rescaled to avoid overflow" not in spoken(at)
    assert "rescaled to avoid overflow" in spoken(open_step(ac.get("linear", feature_map="exp"), 5))


@pytest.mark.parametrize(
    ("middle", "heavy", "flatter"),
    [(1.2, 0.5, True), (0.4, 0.5, False), (2.0, 1.0, False), (2.0, 0.99, True), (0.5, 0.5, False)],
)
def test_a_kernel_is_flatter_if_the_heaviest_pairs_lose_most(middle, heavy, flatter):
    assert kernel_sentence(middle, heavy) == (
        "Linear attention's kernel is flatter than softmax's exponential, so large softmax weights shrink most."
        if flatter
        else "On this input, the pairs with the most softmax weight do not lose the most weight. In this sense, linear "
        "attention's kernel is not flatter than softmax's exponential."
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("sharpness", "is_equal"), [(0.0, True), (1.0, False)])
def test_kernels_are_not_compared_if_softmax_weights_all_keys_equally(sharpness, is_equal, causal):
    step = linear.steps(data(ac.get("linear"), causal=causal, sharpness=sharpness))[3]
    assert step.findings.startswith("Softmax weights all keys of a query equally here") == is_equal
    assert (step.details == "") == is_equal


@pytest.mark.parametrize("causal", [False, True])
def test_one_vector_normalises_every_row(causal):
    q, k, _ = head()
    q, k = (torch.nn.functional.elu(x) + 1 for x in (q, k))
    z = (q * (k.cumsum(0) if causal else k.sum(0))).sum(-1)
    step = linear.steps(data(ac.get("linear"), causal=causal))[4]
    text = step.findings
    low, high = figures(text, r"from (\S+) for .* to (\S+) for")
    assert (low, high) == (pytest.approx(float(z.min()), rel=1e-3), pytest.approx(float(z.max()), rel=1e-3))
    assert f"for “t{int(z.argmin())}” to" in text
    assert f"for “t{int(z.argmax())}”." in text
    assert ("the sum of the key features so far." in step.mechanism) == causal
    assert ("the sum of all key features." in step.mechanism) != causal
    assert step.details == "", "the mechanism is not repeated"


def test_a_sum_that_grows_is_not_called_a_sum_that_is_computed_once():
    step = linear.steps(data(ac.get("linear"), causal=True))[0]
    assert step.mechanism.endswith("The sum of the products is one matrix of fixed size, the state S.")


def test_a_growing_sum_is_called_a_state_and_assumed_sizes_are_named():
    plain, causal = (linear.steps(data(ac.get("linear"), causal=way))[0].findings for way in (False, True))
    state = "With the causal mask, each token is added to the state before its query reads it."
    assert causal.endswith(f". {state}")
    assert state not in plain
    step_data = data(ac.get("linear"))
    wide = replace(step_data.qkv, v=torch.ones(2, 24, 3))
    text = linear.steps(replace(step_data, qkv=wide))[0].findings
    assert text.endswith("The multiply-adds are counted for values with 8 entries, as many as a key has.")
    assert "The multiply-adds are counted for values" not in plain


def test_features_that_are_zero_and_their_angle_are_counted():
    q, k, _ = head()
    q, k = q.relu(), k.relu()
    step = linear.steps(data(ac.get("linear", feature_map="relu")))[2]
    (cosine,) = figures(step.findings, r"mean cosine between query and key features is ([\d.]+)\. The")
    (zero,) = figures(step.details, r"([\d.]+)% of the features are zero")
    assert zero == pytest.approx(100 * float((torch.cat([q, k]) == 0).double().mean()), abs=0.51)
    angles = torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).mT
    assert cosine == pytest.approx(float(angles.mean()), abs=0.0051)


@pytest.mark.parametrize(
    ("share", "sentence"),
    [(0, "No feature is zero."), (0.5, "50% of the features are zero."), (1, "All features are zero.")],
)
def test_none_and_all_features_are_zero_in_words(share, sentence):
    assert zeros_sentence(share) == sentence


def test_sums_of_a_thousand_or_more_have_commas():
    step = linear.steps(data(ac.get("linear"), parts={"normaliser": np.array([1234.4] + [2345.6] * 23)}))[4]
    assert "ranges from 1,234 for “t0” to 2,346 for “t1”." in step.findings
    assert charts(open_step(ac.get("linear"), 5))[-1]["layout"]["yaxis"]["separatethousands"]


def test_the_last_step_reports_the_width_of_rows():
    q, k, _ = head()
    own, exact = (ac.metrics.entropy(ac.get(key).weights(q, k)).exp().quantile(0.5) for key in ("linear", "softmax"))
    text = linear.steps(data(ac.get("linear")))[-1].details
    assert f"over effectively {float(own):.0f} keys, compared with {float(exact):.0f} keys in softmax" in text
