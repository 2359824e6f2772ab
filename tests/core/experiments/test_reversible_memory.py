"""Tests of memory by depth: counted bytes follow the formula, and all three methods compute the same function."""

from dataclasses import replace
from functools import cache

import pytest
import torch

import attention_core as ac
from attention_core.experiments import reversible
from attention_core.experiments.reversible import CHECKPOINTS, DEPTHS, MOST, PLAIN, REVERSIBLE, WAYS
from attention_core.inputs.source import SyntheticSource


def source(n=40, d=16, **settings):
    return SyntheticSource(ac.inputs.SyntheticSpec(n=n, d=d, heads=2, **settings))


@cache
def measured(n, d):
    tasks = reversible.tasks(source(n, d), n, d, head=1)
    return [row for task in tasks for row in reversible.run(task)]


@pytest.mark.parametrize(("n", "d"), [(40, 16), (128, 8)])
def test_what_is_counted_is_what_the_formula_adds(n, d):
    rows = measured(n, d)
    held = {(row.way, row.depth): row.peak_bytes for row in rows}
    assert set(held) == {(way, depth) for way in WAYS for depth in DEPTHS}
    for way, points in reversible.predicted_bytes(rows).items():
        assert [depth for depth, _bytes in points] == list(DEPTHS)
        for depth, promised in points:
            assert held[way, depth] == pytest.approx(promised, rel=0.03), (way, depth)
    assert held[REVERSIBLE, 4] == held[REVERSIBLE, 25]
    assert held[PLAIN, 25] - held[PLAIN, 16] == pytest.approx(9 * reversible.block_bytes(n, d), rel=0.02)
    # From 4 to 25 blocks, √L grows 2.5-fold.
    assert 1.8 < held[CHECKPOINTS, 25] / held[CHECKPOINTS, 4] < 2.6


def test_the_formulas_worst_miss_is_told():
    rows = measured(40, 16)
    assert reversible.max_prediction_error(rows) < 0.03
    twice = [replace(row, peak_bytes=row.peak_bytes * (1 + ((row.way, row.depth) == (PLAIN, 9)))) for row in rows]
    assert reversible.max_prediction_error(twice) == pytest.approx(0.5, abs=0.03)
    assert reversible.max_prediction_error([]) == 0


def test_a_formula_needs_the_first_block():
    rows = [row for row in measured(40, 16) if row.way != PLAIN or row.depth != 1]
    promised = reversible.predicted_bytes(rows)
    assert promised[PLAIN] == []
    assert len(promised[REVERSIBLE]) == len(DEPTHS)


@pytest.mark.parametrize("way", [CHECKPOINTS, REVERSIBLE])
def test_all_ways_compute_one_function_and_its_gradients(way):
    found = []
    for each in (PLAIN, way):
        x = torch.randn(2, 1, 1, 12, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        x1, x2 = (one.clone().requires_grad_() for one in x)
        blocks = reversible.stack(8, 9, like=x1)
        weights = [cell.cell_contents for f_g in blocks for f in f_g for cell in f.__closure__]
        weights = [w for w in weights if isinstance(w, torch.Tensor)]
        assert len(weights) == 54
        out = reversible.forward_streams(each, x1, x2, blocks)
        torch.autograd.backward(out, (x[1], x[0]))
        found.append([*out, x1.grad, x2.grad, *(w.grad for w in weights)])
    for plain, own in zip(*found, strict=True):
        torch.testing.assert_close(own, plain, rtol=1e-9, atol=1e-10)
        assert plain.abs().max() > 0


def test_the_input_comes_back_but_for_rounding_that_grows_with_depth():
    errors = {row.depth: row.error for row in measured(40, 16) if row.way == REVERSIBLE}
    assert 0 < errors[1] < errors[25] < 1e-4
    assert {row.error for row in measured(40, 16) if row.way != REVERSIBLE} == {None}


@pytest.mark.parametrize(("n", "d", "deepest"), [(MOST, 8, 25), (4096, 64, 25), (MOST, 256, 16), (1, 1, 25)])
def test_stacks_too_much_work_are_not_made(n, d, deepest):
    assert max(task.depth for task in reversible.tasks(source(), n, d, head=0)) == deepest


@pytest.mark.parametrize("settings", [{"n": 1}, {"n": 200}, {"n": 40, "sharpness": 0.0}])
def test_short_long_and_flat_inputs(settings):
    where = source(d=4, **settings)
    [row] = reversible.run(reversible.ReversibleTask(source=where, head=1, way=REVERSIBLE, depth=4))
    assert row.n == min(settings["n"], MOST)
    assert row.peak_bytes > 0
    assert row.error < 1e-4
