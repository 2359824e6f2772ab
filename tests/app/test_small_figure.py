"""Tests of the small charts on cards: heights follow the values, axes end at round numbers, names do not overlap."""

import base64
import html
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.figures.small_figure import EDGE, HEIGHT, WIDTH, _wrap, axis_range, small_figure
from app.figures.theme import COLOURS, GREY, SERIES

TITLES = {"x_title": "tokens n", "y_title": "error (%)"}


def svg(chart):
    [packed] = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', chart)
    return base64.b64decode(packed).decode()


def paths(chart):
    """Return the points of each line by colour, without the axes."""
    found = re.findall(r'd="M([\d. L]+)" stroke="(#\w+)" stroke-width', svg(chart))
    return {colour: [tuple(map(float, at.split())) for at in points.split("L")] for points, colour in found}


def bars(chart):
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"', svg(chart))
    return [(*map(float, numbers), colour) for *numbers, colour in found]


def words(chart):
    """Return the texts of the chart in order."""
    return html.unescape(re.sub(r"<[^>]+>", "|", chart.replace("<br>", " "))).replace("||", "|").split("|")


def test_lines_run_from_edge_to_edge_by_the_median_at_each_place():
    points = {"a": [(1, 0.0), (3, 1.0), (2, 9.0), (2, 0.5), (2, 0.5)], "b": [(1, 1.0), (3, 0.0)]}
    lines, right = paths(small_figure(points, **TITLES)), WIDTH - EDGE
    assert lines[SERIES[0]] == [(EDGE, HEIGHT - EDGE), ((EDGE + right) / 2, HEIGHT / 2), (right, EDGE)]
    assert lines[SERIES[1]] == [(EDGE, EDGE), (right, HEIGHT - EDGE)]


@pytest.mark.parametrize(("other", "width"), [(0.99, 5), (0.9, 2)])
def test_a_line_that_another_one_covers_is_wider(other, width):
    chart = svg(small_figure({"a": [(1, 0.0), (2, 1.0)], "b": [(1, 0.0), (2, other)]}, **TITLES))
    widths = dict(re.findall(r'stroke="(#\w+)" stroke-width="(\d+)"', chart))
    assert widths == {SERIES[0]: str(width), SERIES[1]: "2"}


def test_points_that_no_line_joins_are_dots():
    chart = svg(small_figure({"a": [(0, 0.0), (2, 2.0), (4, 1.0)]}, joined=False, **TITLES))
    [path] = re.findall(rf'd="([^"]+)" stroke="{SERIES[0]}"', chart)
    middle, right = f"{WIDTH / 2:.1f}", f"{WIDTH - EDGE:.1f}"
    assert path == f"M{EDGE}.0 {HEIGHT - EDGE:.1f}h0M{middle} {EDGE}.0h0M{right} {HEIGHT / 2:.1f}h0"


def test_equal_ratios_are_equal_distances_on_logarithmic_axes():
    points = {"a": [(1, 1.0), (10, 10.0), (100, 100.0)]}
    [line] = paths(small_figure(points, log_x=True, log_y=True, **TITLES)).values()
    assert line[1] == (WIDTH / 2, HEIGHT / 2)


def test_values_outside_a_logarithmic_axis_are_left_out():
    points = [(1, 1.0), (2, math.nan), (3, -1.0), (0, 5.0), (4, 4.0)]
    [line] = paths(small_figure({"a": points}, log_x=True, log_y=True, **TITLES)).values()
    assert len(line) == 2
    assert small_figure({"a": [(1, math.nan)]}, **TITLES) is None
    assert small_figure({}, **TITLES) is None


def test_a_single_point_and_a_level_line_are_visible():
    assert f'd="M{WIDTH / 2:.1f} {EDGE:.1f}h0"' in svg(small_figure({"a": [(3, 2.0)]}, **TITLES))
    charts = (svg(small_figure({"a": line}, **TITLES)) for line in ([(3, 2.0)], [(1, 0.0), (2, 0.0)]))
    dot, stroke = (float(re.findall(r'stroke-width="([\d.]+)" stroke-linecap="round"', chart)[0]) for chart in charts)
    assert dot >= 4 * stroke
    [line] = paths(small_figure({"a": [(1, 0.0), (2, 0.0)]}, **TITLES)).values()
    assert {y for _x, y in line} == {HEIGHT - EDGE}


@pytest.mark.parametrize(
    ("low", "high", "options", "expected"),
    [
        (33, 84, {"log": False}, (30, 90)),
        (1, 60, {"log": False}, (0, 60)),
        (-3, 1, {"log": False}, (-3, 1)),
        (0.31, 0.32, {"log": False}, (0.31, 0.32)),
        (40, 50, {"log": False, "zero": True}, (0, 50)),
        (7, 7, {"log": False}, (0, 7)),
        (0, 0, {"log": False}, (0, 1)),
        (16, 430, {"log": True}, (10, 500)),
        (1e-5, 3e-5, {"log": True}, (1e-5, 5e-5)),
        (10, 10, {"log": True}, (5, 20)),
        (10, 90, {"log": True, "zero": True}, (5, 100)),
    ],
)
def test_an_axis_ends_at_round_numbers(low, high, options, expected):
    assert axis_range(low, high, **options) == pytest.approx(expected)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.booleans(), st.booleans())
@example(1e-6, 1.0000000000000002e-6, False, False)
def test_an_axis_includes_all_values(a, b, log, zero):
    low, high = axis_range(min(a, b), max(a, b), log=log, zero=zero)
    assert low <= min(a, b) * (1 + 1e-8)
    assert high >= max(a, b) * (1 - 1e-8)
    assert low < high


def test_both_axes_have_a_name_and_two_ticks_and_names_are_in_the_order_of_the_lines_ends():
    chart = small_figure({"low": [(16, 10.0), (128, 20.0)], "high <x>": [(16, 50.0), (128, 84.0)]}, **TITLES)
    assert [each for each in words(chart) if each] == [
        "error (%)", "90", "0", "high <x>", "low", "16", "tokens n", "128"
    ]  # fmt: skip
    shares = small_figure({"a": [(1, 0.1), (2, 0.84)]}, share=True, **TITLES)
    assert {"90", "0"} <= set(words(shares))


@pytest.mark.parametrize(
    ("low", "options", "cut"),
    [(9.0, {}, True), (9.0, {"include": 0}, False), (1.0, {}, False), (9.0, {"log_y": True}, False)],
)
def test_an_axis_that_does_not_begin_at_zero_has_a_zigzag(low, options, cut):
    lines = small_figure({"a": [(1, low), (2, 10.0)]}, **TITLES, **options)
    assert ("l4 3l-8 6l4 3" in svg(lines)) == cut
    if "include" not in options:
        rows = small_figure({"a": [(0, low), (1, 10.0)]}, categories=["one", "two"], **TITLES, **options)
        assert ("l3 -4l6 8l3 -4" in svg(rows)) == cut


@pytest.mark.parametrize(("include", "start"), [(None, "97"), (90, "90"), (0, "0"), (99, "97")])
def test_an_axis_includes_a_chosen_value(include, start):
    assert start in words(small_figure({"a": [(1, 97.0), (2, 100.0)]}, include=include, **TITLES))


@pytest.mark.parametrize("log", [False, True])
def test_bars_start_at_the_left_and_have_proportional_lengths(log):
    chart = small_figure({"a": [(0, 1.0)], "b": [(0, 4.0)]}, categories=["one"], log_y=log, **TITLES)
    low, high = bars(chart)
    assert low[2] < high[2]
    assert low[0] == high[0]
    assert low[1] < high[1]
    assert (low[4], high[4]) == (SERIES[0], SERIES[1])
    assert {"a", "b", "one", "error (%) "} <= set(words(chart))
    if not log:
        assert high[2] == pytest.approx(4 * low[2], abs=0.2)


def test_bars_of_their_own_name_have_no_legend():
    chart = small_figure({"a": [(0, 1.0)], "b": [(1, 4.0)]}, categories=["a", "b"], **TITLES)
    assert [words(chart).count(name) for name in "ab"] == [1, 1]


@pytest.mark.parametrize(("names", "named"), [(["first"], False), (["first", "second"], True)])
def test_only_several_series_of_bars_have_a_legend(names, named):
    chart = small_figure({name: [(0, 1.0), (1, 2.0)] for name in names}, categories=["one", "two"], **TITLES)
    assert ("first" in chart) == named


def test_negative_bars_start_at_zero():
    up, down = bars(small_figure({"a": [(0, 1.0), (1, -1.0)]}, categories=["one", "two"], **TITLES))
    assert up[0] == pytest.approx(down[0] + down[2], abs=0.2)


def test_bars_ascend_by_their_first_series_and_have_their_values():
    series = {"a": [(0, 9.0), (1, 1.0), (2, 4.0)], "b": [(0, 2.0), (1, 3.456), (2, 5.0)]}
    chart = small_figure(series, categories=["high", "low", "middle"], **TITLES)
    assert [each for each in words(chart) if each] == [
        "error (%) ", "a", "b", "low", "middle", "high",
        "1", " · ", "3.46", "4", " · ", "5", "9", " · ", "2", "0", "9"
    ]  # fmt: skip
    tints = re.findall(r"color:color-mix\(in srgb,(#\w+) \d+%,currentcolor\)", chart)
    assert tints == [*SERIES[:2]] * 3, "the values have the series' colours"
    tops = {length: top for _left, top, length, _height, colour in bars(chart) if colour == SERIES[0]}
    assert [tops[length] for length in sorted(tops)] == sorted(tops.values())


@pytest.mark.parametrize("subject", ["", "high"])
def test_the_name_and_the_values_of_the_subject_are_bold(subject):
    series = {"error": [(0, 9.0), (1, 1.0)]}
    chart = small_figure(series, categories=["high", "low"], subject=subject, **TITLES)
    assert re.findall(r"font-weight:bold\">(?:<span[^>]*>)?([^<]+)", chart) == (["high", "9"] if subject else [])


@pytest.mark.parametrize(
    ("low", "options", "is_dots"),
    [(0.5, {}, True), (0.4, {}, False), (0.5, {"log_y": True}, True), (0.5, {"share": True}, False)],
)
def test_dots_on_a_shorter_axis_replace_bars_of_similar_lengths(low, options, is_dots):
    chart = small_figure({"a": [(0, low), (1, 0.9)]}, categories=["one", "two"], **TITLES, **options)
    assert len(bars(chart)) == (0 if is_dots else 2)
    assert svg(chart).count(f'h0" stroke="{SERIES[0]}"') == (2 if is_dots else 0)
    assert ("0" in words(chart)) == (not is_dots and "log_y" not in options)


def test_more_series_than_colours_repeat_colours_without_grey():
    many = {str(i): [(0, float(i)), (1, 0.0)] for i in range(COLOURS + 1)}
    assert SERIES[GREY] not in paths(small_figure(many, **TITLES))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("delta 规则，步长设上限", ["delta 规则，", "步长设上限"]),
        ("delta 规则，步长 1/t", ["delta 规则，", "步长 1/t"]),
        ("双重 softmax", ["双重 softmax"]),
        ("融合算子（不存储矩阵）", ["融合算子", "（不存储矩阵）"]),
        ("秩与 Linformer 相同的最佳近似", ["秩与 Linformer", "相同的最佳近似"]),
        ("delta rule, capped steps", ["delta rule,", "capped steps"]),
    ],
)
def test_a_long_chinese_name_breaks_next_to_marks_or_at_a_space(name, lines):
    assert _wrap(name) == lines
