"""Tests of the Gradient view: the bytes of each way and the difference of the gradients."""

import pytest
from driver import points, read_number, spoken, table

import attention_core as ac
from attention_core.experiments import causal_gradient
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesRow, BytesTask, DifferenceRow
from attention_core.experiments.causal_modes import MATRIX
from pages.causal.gradient import sentence


def test_the_gradients_bytes_and_differences(open_view):
    at = open_view("gradient")
    held, ratio = points(at, -2), points(at)
    [row] = causal_gradient.run(BytesTask(word="linear", way="chunked", n=256, d=8, d_v=8))
    assert held["running sums"][256] == pytest.approx(row.peak_bytes / 2**20)
    states, matrix = "autograd through all states", "autograd through the matrix"
    for name in (states, matrix):
        assert ratio[name][1024] == pytest.approx(held[name][1024] / held["running sums"][1024])
    factor = held[states][512] / held["running sums"][512]
    assert f"{factor:.0f}× less than all states" in spoken(at)
    assert "At n = 512" in spoken(at)
    found = table(at)
    assert list(found.index) == ["q", "k", "v"]
    assert found.filter(like="float64").map(read_number).to_numpy().max() < 1e-12
    assert 0 < found.filter(like="float32").map(read_number).to_numpy().max() < 1e-4


def test_the_gradient_takes_linears_own_feature_map(open_view):
    at = open_view("gradient", variants=(ac.get("softmax"), ac.get("linear", feature_map="exp")))
    held = points(at, -2)
    found = {}
    for name in ("elu+1", "exp"):
        word = ac.get("linear", feature_map=name).word
        [row] = causal_gradient.run(BytesTask(word=word, way="cumsum", n=1024, d=8, d_v=8))
        found[name] = row.peak_bytes / 2**20
    assert found["exp"] != found["elu+1"]
    assert held["autograd through all states"][1024] == pytest.approx(found["exp"])


def held(*lengths):
    return [
        BytesRow(way=way, n=n, peak_bytes=times * n * 2**10)
        for n in lengths
        for way, times in ((SUMS, 2), (STATES, 16), (MATRIX, 6))
    ]


APART = [
    DifferenceRow(dtype=dtype, gradient=letter, way=STATES, difference=difference)
    for dtype, letter, difference in (("float32", "q", 2e-7), ("float32", "k", 3e-6), ("float64", "q", 1e-3))
]
DIFFER = "The gradients differ by at most 3 × 10⁻⁶ of the largest."


def test_the_sentence_tells_of_the_longest_length_up_to_512():
    told = sentence(held(64, 512, 1024), APART, "Linear").replace("\N{NO-BREAK SPACE}", " ")
    assert told == (
        "At n = 512 autograd through all states of **Linear** holds **8.0 MiB** and through the explicit matrix "
        f"3.0 MiB, the running sums hold **1.0 MiB**, 8× less than all states. {DIFFER}"
    )
    assert sentence(held(64), APART, "Linear").startswith("At n = 64 ")


def test_the_sentence_tells_what_is_known_so_far():
    assert sentence([], APART, "Linear").replace("\N{NO-BREAK SPACE}", " ") == DIFFER
    assert sentence(held(64)[:2], APART, "Linear").replace("\N{NO-BREAK SPACE}", " ") == DIFFER
    assert "differ" not in sentence(held(64), [], "Linear")
