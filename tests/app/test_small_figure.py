"""Tests of the small figure: heights follow the values, also on log axes, and undrawable values are left out."""

import base64
import math
import re

import pytest

from app.figures.small_figure import EDGE, HEIGHT, WIDTH, small_figure
from app.figures.theme import COLOURS, GREY, SERIES


def svg(address):
    kind, _, packed = address.partition(";base64,")
    assert kind == "data:image/svg+xml"
    return base64.b64decode(packed).decode()


def paths(address):
    """Return the points of each line by colour, without the background."""
    found = re.findall(r'd="M([\d. L]+)" stroke="(#\w+)" stroke-width', svg(address))
    return {colour: [tuple(map(float, at.split())) for at in points.split("L")] for points, colour in found}


def bars(address):
    found = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"', svg(address)
    )
    return [(*map(float, numbers), colour) for *numbers, colour in found]


def test_lines_run_from_edge_to_edge_by_the_median_at_each_place():
    lines = paths(small_figure({"a": [(1, 0.0), (3, 1.0), (2, 9.0), (2, 0.5), (2, 0.5)], "b": [(1, 1.0), (3, 0.0)]}))
    assert lines[SERIES[0]] == [(EDGE, HEIGHT - EDGE), (WIDTH / 2, HEIGHT / 2), (WIDTH - EDGE, EDGE)]
    assert lines[SERIES[1]] == [(EDGE, EDGE), (WIDTH - EDGE, HEIGHT - EDGE)]


def test_equal_ratios_are_equal_distances_on_logarithmic_axes():
    [line] = paths(small_figure({"a": [(1, 1.0), (10, 10.0), (100, 100.0)]}, log_x=True, log_y=True)).values()
    assert line[1] == (WIDTH / 2, HEIGHT / 2)


def test_values_outside_a_logarithmic_axis_are_left_out():
    points = [(1, 1.0), (2, math.nan), (3, -1.0), (0, 5.0), (4, 4.0)]
    [line] = paths(small_figure({"a": points}, log_x=True, log_y=True)).values()
    assert len(line) == 2
    assert small_figure({"a": [(1, math.nan)]}) is None
    assert small_figure({}) is None


def test_a_single_point_and_a_level_line_are_visible():
    assert f'cx="{WIDTH / 2:.1f}" cy="{HEIGHT / 2:.1f}"' in svg(small_figure({"a": [(3, 2.0)]}))
    [line] = paths(small_figure({"a": [(1, 2.0), (2, 2.0)]})).values()
    assert {y for _x, y in line} == {HEIGHT / 2}


@pytest.mark.parametrize("log", [False, True])
def test_bars_start_at_the_bottom_and_have_proportional_heights(log):
    low, high = bars(small_figure({"a": [(0, 1.0)], "b": [(0, 4.0)]}, bars=True, log_y=log))
    assert low[3] < high[3]
    assert low[1] + low[3] == pytest.approx(high[1] + high[3], abs=0.2)
    assert low[0] + low[2] == pytest.approx(high[0], abs=0.2)
    assert (low[4], high[4]) == (SERIES[0], SERIES[1])
    if not log:
        assert high[3] == pytest.approx(4 * low[3], abs=0.2)


def test_negative_bars_start_at_zero():
    up, down = bars(small_figure({"a": [(0, 1.0), (1, -1.0)]}, bars=True))
    assert up[1] + up[3] == pytest.approx(down[1], abs=0.2)
    assert up[0] < down[0]


def test_more_series_than_colours_repeat_colours_without_grey():
    many = {str(i): [(0, float(i)), (1, 0.0)] for i in range(COLOURS + 1)}
    assert SERIES[GREY] not in paths(small_figure(many))
