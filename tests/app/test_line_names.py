"""Tests of the names at the ends of a chart's lines: they are near the ends without overlap, or else in a legend."""

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plotly.graph_objects import Figure

from app.figures.lines.curve import Curve, guide
from app.figures.lines.curves import curves
from app.figures.lines.line_names import (
    LETTER,
    LINE,
    PREFIX,
    End,
    label_at_point,
    spread_positions,
    text_size,
    with_legend_below,
    wrap_name,
)
from app.figures.lines.text_placement import Box, find_side
from app.figures.theme import SERIES

PLACES = st.floats(-50, 150, allow_nan=False)


@settings(deadline=None)  # Other processes may slow the machine down.
@given(st.lists(st.tuples(PLACES, st.floats(1, 9)), min_size=1, max_size=11), st.randoms())
def test_names_do_not_overlap_and_have_the_nearest_positions(wishes, chance):
    wanted, sizes = map(list, zip(*wishes, strict=True))
    found = spread_positions(wanted, sizes, 0, 100)
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], found[i]))

    def is_apart(places):
        edges = [(places[i] - sizes[i] / 2, places[i] + sizes[i] / 2) for i in order]
        after = [100 - places[order[-1]] - sizes[order[-1]] / 2]
        return all(gap > -1e-6 for gap in [edges[0][0], *after, *(b[0] - a[1] for a, b in pairwise(edges))])

    assert is_apart(found)

    def distance(places):
        return sum((place - wish) ** 2 for place, wish in zip(places, wanted, strict=True))

    for step in (0.01, 1.0):
        for _try in range(20):
            others = [place + chance.uniform(-step, step) for place in found]
            if is_apart(others):
                assert distance(others) >= distance(found) - 1e-3


def test_names_with_room_are_at_the_ends_of_their_lines():
    assert spread_positions([80.0, 10.0, 40.0], [9, 9, 9], 0, 100) == [80.0, 10.0, 40.0]
    assert spread_positions([10.0, 10.0], [8, 8], 0, 100) == [6.0, 14.0]
    assert spread_positions([0.0, 100.0], [8, 8], 0, 100) == [4.0, 96.0]


@pytest.mark.parametrize(("high", "fits"), [(16, True), (15.9, False)])
def test_names_without_room_have_no_positions(high, fits):
    assert (spread_positions([3.0, 3.0], [8, 8], 0, high) is not None) is fits


def names(figure):
    """Return the annotations at the ends of lines, by line name."""
    found = [each for each in figure["layout"].get("annotations", ()) if "name" in each]
    return {figure["data"][int(each["name"].removeprefix(PREFIX))]["name"]: each for each in found}


def lines(count, **how):
    return [Curve(f"line {i}", [1, 10], [0.5, 1.0 + 1e-3 * i], colour=i, **how) for i in range(count)]


def test_each_line_has_its_name_at_its_end_and_no_legend():
    figure = curves([*lines(3), guide("floor", [1, 10], [0, 0])], x_title="", y_title="", log_x=True, height=400)
    Figure(figure)
    found = names(figure)
    assert list(found) == ["line 0", "line 1", "line 2", "floor"]
    assert figure["layout"]["showlegend"] is False
    heights = [found[name]["y"] for name in ("line 0", "line 1", "line 2")]
    low, high = figure["layout"]["yaxis"]["range"]
    assert all(abs(b - a) * 330 / (high - low) == pytest.approx(LINE) for a, b in pairwise(heights))
    joint = figure["layout"]["shapes"][0]
    assert (joint["x0"], joint["y0"]) == (pytest.approx(10), 1.0)
    assert joint["x1"] == pytest.approx(10 ** figure["layout"]["xaxis"]["range"][1])


def test_a_name_is_at_the_last_drawn_point_of_its_line():
    line = Curve("a", [1, 2.95, 3], [4.0, 8.0, None])
    figure = curves([line, Curve("b", [1, 3], [0.0, 0.0])], x_title="", y_title="", log_y=True)
    joint = figure["layout"]["shapes"][0]
    assert (joint["x0"], joint["y0"]) == (2.95, pytest.approx(8))
    assert joint["y1"] == pytest.approx(10 ** names(figure)["a"]["y"]), "names on this axis count in decades"
    assert "b" not in names(figure), "nothing of it is drawn"


@pytest.mark.parametrize(("end", "joints"), [(2.92, 2), (2.8, 1)])
def test_a_line_that_ends_far_from_its_name_is_not_connected_with_it(end, joints):
    figure = curves([Curve("a", [1, end], [4.0, 8.0]), Curve("b", [1, 3], [0.0, 0.0])], x_title="", y_title="")
    assert list(names(figure)) == ["a", "b"]
    assert len(figure["layout"]["shapes"]) == joints


@pytest.mark.parametrize(("last", "joints"), [(1.002, ["→ *"] * 2), (1.1, ["→ 0", "→ 1", "→ 2"])])
def test_three_lines_that_end_at_the_same_place_share_one_connecting_line_and_a_bracket(last, joints):
    ends = [1.0, 1.001, last]
    figure = curves([Curve(f"line {i}", [1, 10], [0.0, y]) for i, y in enumerate(ends)], x_title="", y_title="")
    shapes, heights = figure["layout"]["shapes"], [each["y"] for each in names(figure).values()]
    assert [shape["name"] for shape in shapes] == joints
    if len(shapes) == 2:
        joint, bracket = shapes
        assert bracket["x0"] == bracket["x1"] == joint["x1"] == figure["layout"]["xaxis"]["range"][1]
        assert (bracket["y0"], bracket["y1"]) == (min(heights), max(heights))
        assert bracket["y0"] <= joint["y1"] <= bracket["y1"]
        assert (joint["x0"], joint["y0"]) == (10, 1.0)


def test_a_line_may_have_no_name_or_a_shorter_name():
    figure = curves(
        [Curve("Local · window 3", [1], [1.0], label="Local"), Curve("floor", [1], [0.5], name_at_end=False)],
        x_title="",
        y_title="",
    )
    [(group, only)] = names(figure).items()
    assert (group, only["text"].split("</span> ")[1]) == ("Local · window 3", "Local")


def test_too_many_lines_have_a_legend():
    figure = curves(lines(30), x_title="", y_title="", height=300)
    assert not names(figure)
    assert "showlegend" not in figure["layout"]


def test_a_number_stays_with_the_word_before_it():
    assert wrap_name("Nyström · landmarks 8") == ["Nyström ·", "landmarks 8"]


def test_a_long_name_is_wrapped_and_the_margin_fits_the_longest_line():
    assert wrap_name("Expectation maximisation") == ["Expectation", "maximisation"]
    margins = [
        curves([Curve(name, [1], [1.0])], x_title="", y_title="")["layout"]["margin"]["r"]
        for name in ("short", "somewhat longer")
    ]
    assert margins[0] < margins[1]


def test_chinese_names_wrap_between_characters_and_have_room_for_their_width():
    assert wrap_name("固定大小的状态：25 个变体") == ["固定大小的状态：25 个", "变体"]
    assert wrap_name("Softmax，log n 缩放：10") == ["Softmax，", "log n 缩放：10"]
    assert wrap_name("全部键和值：25 个变体") == ["全部键和值：25 个变体"]
    assert wrap_name("注意力汇聚点 · 窗口 64 · 汇聚点 1") == ["注意力汇聚点 · 窗口 64", "· 汇聚点 1"]
    assert wrap_name("一二三四五六七八九十，一二三") == ["一二三四五六七八九十，", "一二三"]
    chinese, latin = (
        curves([Curve(name, [1], [1.0])], x_title="", y_title="")["layout"]["margin"]["r"]
        for name in ("所有像素的均值", "average")
    )
    assert chinese - latin > 7 * (12 - LETTER), "a Chinese character is about as wide as the font is high"


def test_a_narrow_screen_has_a_legend_below_the_chart():
    wide = curves(lines(3), x_title="", y_title="", mark=(2.0, "here"), log_x=True)
    narrow = with_legend_below(wide)
    assert ("dtick" in wide["layout"]["xaxis"], "dtick" in narrow["layout"]["xaxis"]) == (True, False)
    Figure(narrow)
    assert not names(narrow)
    assert narrow["layout"]["showlegend"]
    assert len(narrow["layout"]["shapes"]) == 1, "the upright line stays"
    assert narrow["layout"]["height"] > wide["layout"]["height"]
    assert narrow["layout"]["margin"]["r"] < wide["layout"]["margin"]["r"]
    assert names(wide), "the other is as it was"
    stamped = with_legend_below(
        {**wide, "layout": {**wide["layout"], "margin": {**wide["layout"]["margin"], "b": 100}}}
    )
    assert stamped["layout"]["margin"]["b"] - 100 == narrow["layout"]["height"] - wide["layout"]["height"]
    other = {"data": [], "layout": {"annotations": [{"text": "mine"}]}}
    assert with_legend_below(other) is other


@pytest.mark.parametrize("name", ["learned = 95%", "学会 = 95%"])
def test_the_legend_below_a_chart_names_a_guide_whose_name_is_a_text_in_the_wide_chart(name):
    guide = Curve(name, [1, 10], [0.5, 0.5], texts=[name, ""], name_at_end=False)
    mark = Curve("crossing", [2], [0.5], texts=["from 2 tokens"], name_at_end=False)
    plain, guided = (
        with_legend_below(curves([*lines(3), *more], x_title="", y_title="")) for more in ([mark], [mark, guide])
    )
    shown = [trace["name"] for trace in guided["data"] if trace["showlegend"]]
    assert shown == [*(trace["name"] for trace in plain["data"] if trace["showlegend"]), name]
    assert "crossing" not in shown
    assert [trace["text"] for trace in guided["data"] if "text" in trace["mode"]] == [["95%", ""]]
    guide = Curve("floor", [1, 10], [0.5, 0.5], texts=["floor", ""], name_at_end=False)
    floor = with_legend_below(curves([*lines(3), guide], x_title="", y_title=""))
    assert not any("text" in trace["mode"] for trace in floor["data"])
    assert guided["layout"]["height"] > plain["layout"]["height"]


def bands(figure):
    return [trace["opacity"] for trace in figure["data"] if trace.get("fill")]


def test_several_bands_are_visible_only_up_to_a_number():
    one, *others = lines(3, low=[0.0, 0.5], high=[1.0, 2.0])
    assert bands(curves([one, *lines(2)], x_title="", y_title="")) == [pytest.approx(0.18)]
    assert bands(curves([one, *others], x_title="", y_title="")) == [0, 0, 0]
    assert bands(curves([one, others[0]], x_title="", y_title="", max_bands=2)) == [pytest.approx(0.18)] * 2
    assert bands(curves([one, *others], x_title="", y_title="", max_bands=2)) == [0, 0, 0]


def test_a_point_may_be_a_link():
    line = Curve("a", [1, 2], [1.0, 2.0], notes=["one", "two"], links=["1", "2"])
    figure = curves([line], x_title="", y_title="", link_prefix="page?v=")
    Figure(figure)
    assert figure["layout"]["meta"] == {"link_prefix": "page?v="}
    assert figure["data"][0]["meta"] == {"links": ["1", "2"]}
    assert figure["data"][0]["customdata"] == ["one", "two"]


def test_each_part_of_a_line_above_the_axis_has_one_arrow_at_its_largest_value():
    leaves = Curve("a", [0, 2, 4, 6, 8, 10], [0.0, 2.0, 3.0, 0.5, 1.5, 0.0])
    figure = curves([leaves], x_title="", y_title="", top=1.0, percent=True)
    arrows = [(each["x"], re.sub("<span.*?</span>", "▲", each["text"])) for each in figure["layout"]["annotations"]]
    assert [each for each in arrows if "% ▲" in each[1]] == [(4.0, "300% ▲"), (8.0, "150% ▲")]


def test_the_values_of_two_arrows_at_the_same_position_are_below_each_other():
    figure = curves(
        [Curve(name, [0, 4, 8], [0.0, largest, 0.0]) for name, largest in (("a", 3.0), ("b", 7.0))],
        x_title="",
        y_title="",
        top=1.0,
        percent=True,
    )
    assert "300% ▲<br>700% ▲" in [
        re.sub("<span.*?</span>", "▲", each["text"]) for each in figure["layout"]["annotations"]
    ]


def test_the_value_of_an_arrow_at_the_left_end_covers_no_tick():
    line = Curve("a", [0, 2, 4, 6], [3.0, 0.5, 2.0, 0.5])
    drawn = curves([line], x_title="", y_title="", top=1.0, percent=True)["layout"]["annotations"]
    arrows = [(re.sub("<span.*?</span>", "▲", each["text"]), each["xanchor"]) for each in drawn if "%" in each["text"]]
    assert arrows == [("▲ 300%", "left"), ("200% ▲", "right")]


@pytest.mark.parametrize(("at", "side"), [(4.5, "left"), (5.5, "right")])
@pytest.mark.parametrize(("top", "lines"), [(1.0, 2), (3.0, 1)])
def test_the_label_of_a_mark_is_above_arrows_and_away_from_the_right_edge(at, side, top, lines):
    leaves = Curve("a", [0, 6, 8, 10], [0.0, 0.0, 2.0, 0.0])
    figure = curves([leaves], x_title="", y_title="", top=top, mark=(at, "here"))
    [label] = [each for each in figure["layout"]["annotations"] if each["text"].startswith("here")]
    assert (label["x"], label["xanchor"], len(label["text"].split("<br>"))) == (at, side, lines)


@pytest.mark.parametrize(("count", "has_values"), [(2, True), (3, False)])
def test_many_arrows_have_no_values(count, has_values):
    leaves = [Curve(f"{i}", [0, i, 10], [0.0, 2.0, 0.0]) for i in range(1, count + 1)]
    texts = [each["text"] for each in curves(leaves, x_title="", y_title="", top=1.0)["layout"]["annotations"]]
    assert [text.startswith("2 ") for text in texts if "▲" in text] == [has_values] * count


@pytest.mark.parametrize("log", [False, True])
def test_an_axis_that_ends_before_the_last_points_still_has_their_data(log):
    """Check a line that leaves the axis, one from the right, one beyond it, and one within it, with their names."""
    drawn = [
        Curve("out", [1, 100], [0.0, 2.0]),
        Curve("back", [100, 1], [2.0, 0.0]),
        Curve("beyond", [20], [1.0]),
        Curve("within", [1, 10], [0.0, 0.5]),
    ]
    figure = curves(drawn, x_title="", y_title="", log_x=log, right=10.0)
    assert [list(trace["x"]) for trace in figure["data"]] == [line.x for line in drawn]
    assert figure["layout"]["xaxis"]["range"][1] == (1.0 if log else 10.0)
    height = 1.0 if log else 2 * 9 / 99
    shapes = {shape["name"]: shape for shape in figure["layout"]["shapes"]}
    assert [shapes[f"→ {i}"]["y0"] for i in (0, 1, 3)] == pytest.approx([height, height, 0.5])
    assert set(names(figure)) == {"out", "back", "within"}


def test_ticks_have_texts_and_percentages():
    axes = {"x_ticks": {2.0: "two"}, "percent": True, "log_y": True}
    layout = curves([Curve("a", [1, 3], [0.5, 1.0])], x_title="", y_title="", **axes)["layout"]
    assert (layout["xaxis"]["tickvals"], layout["xaxis"]["ticktext"]) == ([2.0], ["two"])
    assert layout["yaxis"]["tickformat"] == "~%"


def test_a_line_that_ends_above_the_axis_has_an_arrow_after_its_name():
    figure = curves([Curve("a", [0, 1], [0.0, 3.0]), Curve("b", [0, 1], [0.0, 0.5])], x_title="", y_title="", top=1.0)
    assert {name: each["text"].endswith(" ▲") for name, each in names(figure).items()} == {"a": True, "b": False}


def test_the_name_of_a_single_point_with_its_own_symbol_is_next_to_it():
    figure = curves([*lines(1), Curve("star", [5], [0.5], symbol="star")], x_title="", y_title="")
    assert (names(figure)["star"]["x"], names(figure)["star"]["y"]) == (5, 0.5)
    assert names(figure)["line 0"]["xref"] == "paper"


@pytest.mark.parametrize(("crossing", "side"), [([0.0, 1.0], "right"), ([0.0, 0.1], "left")])
def test_the_name_of_a_single_point_is_on_its_other_side_if_a_line_would_cross_it(crossing, side):
    star = Curve("star", [5], [0.5], symbol="star")
    figure = curves([Curve("line", [0, 10], crossing), star], x_title="", y_title="")
    assert names(figure)["star"]["xanchor"] == side


def test_the_name_at_a_point_and_the_texts_of_points_cross_neither_lines_nor_each_other():
    falling = Curve("a", [0, 1, 2, 3], [3.0, 2.0, 1.5, 0.0], texts=["", "2", "4", "8"], name_index=0, large_index=2)
    figure = curves([falling], x_title="", y_title="")
    assert figure["data"][0]["textposition"][1:] == ["top right"] * 3
    assert figure["data"][0]["marker"]["size"] == [6, 6, 12, 6]
    assert (names(figure)["a"]["x"], names(figure)["a"]["y"], names(figure)["a"]["xanchor"]) == (0, 3.0, "left")
    assert figure["layout"]["showlegend"] is False
    above = Curve("b", [0.9, 3], [2.1, 2.05], markers=False)
    sides = curves([falling, above], x_title="", y_title="")["data"][0]["textposition"]
    assert sides[1:] == ["bottom left", "top right", "top right"], "the other line passes above the second point"
    close = replace(falling, x=[0, 0.02, 2, 3], y=[3.0, 2.9, 1.5, 0.0])
    assert curves([close], x_title="", y_title="")["data"][0]["textposition"][1] != "top right", "the name is there"


@pytest.mark.parametrize(
    ("heights", "positions", "side"),
    [
        ((), (), "top right"),
        ((124,), (), "bottom left"),
        ((), (478, 520), "bottom center"),
        ((76,), (478, 520), "top center"),
        ((76, 124), (478, 520), "top right"),
        ((76, 124), (), "middle right"),
        ((74, 110), (), "bottom left"),
    ],
)
def test_a_text_keeps_a_distance_from_lines_if_there_is_room(heights, positions, side):
    """Check horizontal and vertical lines 1 to 3 pixels away from a text of 15 by 17 pixels next to a point."""
    paths = [[(0, y), (960, y)] for y in heights] + [[(x, 0), (x, 300)] for x in positions]
    found, box = find_side((500, 100), (15, 17), paths, [], 960)
    assert found == side
    assert not any(map(box.is_crossed, paths))
    shown = label_at_point(End(trace=0, name="a", colour=0, x=500, y=100), found)
    left = shown["x"] + shown.get("xshift", 0) - 15 * ("left", "center", "right").index(shown["xanchor"]) / 2
    low = (
        shown["y"] + shown.get("yshift", 0) - 17 * ("bottom", "middle", "top").index(shown.get("yanchor", "middle")) / 2
    )
    assert (left, low) == (box.left, box.low), "the chart shows the text where it is free"


@pytest.mark.parametrize(("x", "side"), [(500, "top right"), (950, "top left")])
def test_a_text_without_room_is_not_cut_off_at_the_right(x, side):
    everywhere = [Box(0, 0, 960, 300)]
    found, box = find_side((x, 100), (90, 17), [], everywhere, 960)
    assert (found, box.right <= 960) == (side, True)


@pytest.mark.parametrize(("name", "size"), [("star", (29.6, 17)), ("a star<br>here", (44.4, 34))])
def test_the_size_of_a_text_is_that_of_its_longest_line_and_of_all_lines(name, size):
    assert text_size(name) == pytest.approx(size)


@pytest.mark.parametrize(("mark", "side"), [(None, "left"), (5.2, "right")])
def test_a_name_at_a_point_does_not_cross_the_vertical_mark(mark, side):
    star = Curve("star", [5], [0.5], symbol="star")
    figure = curves([*lines(1), star], x_title="", y_title="", mark=None if mark is None else (mark, "half"))
    assert names(figure)["star"]["xanchor"] == side


def test_points_show_their_texts_and_other_lines_show_no_texts():
    texts, plain = curves(
        [Curve("a", [0, 1], [0.0, 3.0], texts=["", "16"]), Curve("b", [0, 1], [1.0, 2.0])], x_title="", y_title=""
    )["data"]
    assert (texts["text"], texts["mode"]) == (["", "16"], "lines+markers+text")
    assert "text" not in plain
    [guided] = curves([Curve("a", [0, 1], [0.0, 3.0], texts=["a", ""], markers=False)], x_title="", y_title="")["data"]
    assert guided["textposition"][0] == "bottom right", "the line rises above the point"
    [single] = curves([Curve("a", [1], [3.0], texts=["a"])], x_title="", y_title="")["data"]
    assert single["textposition"] == ["top right"]
    [fixed] = curves([Curve("a", [1], [3.0], texts=["a"], text_position="top left")], x_title="", y_title="")["data"]
    assert fixed["textposition"] == "top left"
    drawn = [Curve("a", [1], [3.0], texts=["a"]), Curve("b", [1, 2], [3.0, 4.0], texts=["b", ""])]
    narrow = with_legend_below(curves(drawn, x_title="", y_title=""))
    assert [trace["mode"] for trace in narrow["data"]] == ["lines+markers", "lines+markers"]


@pytest.mark.parametrize(("x", "side"), [(130, "right"), (102, "left")])
def test_a_crossed_name_near_the_left_end_of_any_axis_stays_right_of_its_point(x, side):
    line, star = Curve("line", [100, 160], [0.0, 1.0]), Curve("star", [x], [(x - 100) / 60], symbol="star")
    assert names(curves([line, star], x_title="", y_title=""))["star"]["xanchor"] == side


def test_the_background_is_shaded_up_to_the_right_end():
    figure = curves(lines(1), x_title="", y_title="", log_x=True, right=8, shaded=(2, "dear"))
    [area] = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    assert (area["x0"], area["x1"], area["layer"]) == (2, 8, "below")
    [label] = [each for each in figure["layout"]["annotations"] if each["text"] == "dear"]
    assert (label["x"], label["xanchor"]) == (pytest.approx(math.log10(8)), "right")


RISING = [0.0, 0.1, 0.9, 1.0, 1.0]


def steep(name, shift, **changes):
    """Return a line that rises from step 100 + ``shift`` to step 200 + ``shift``."""
    look = {"markers": False, "name_heights": (0.6, 0.8)} | changes
    return Curve(name, [0, 100 + shift, 200 + shift, 300 + shift, 600], RISING, **look)


def places_of(lines):
    """Return the sides of the lines on which the names are, and their heights; None for a name at a line's end."""
    figure = curves(lines, x_title="x", y_title="y", height=320, top=1.0)
    return {
        name: None if each.get("xref") == "paper" else (each["xanchor"], pytest.approx(each["y"]))
        for name, each in names(figure).items()
    }


def test_the_names_of_steep_lines_that_end_together_are_next_to_the_lines():
    first, second = steep("first", 0), steep("second", 200, colour=1)
    assert places_of([first, second]) == {"first": ("left", 0.6), "second": ("left", 0.6)}
    figure = curves([first, second], x_title="x", y_title="y", height=320, top=1.0)
    assert [each["x"] for each in figure["layout"]["annotations"]] == pytest.approx([162.5, 362.5])
    assert all(each["text"].startswith("<span") for each in figure["layout"]["annotations"])
    assert figure["layout"]["showlegend"] is False
    assert with_legend_below(figure)["layout"]["showlegend"]


@pytest.mark.parametrize(
    ("shift", "place"), [(60, ("left", 0.6)), (30, ("left", 0.6)), (-10, ("right", 0.6)), (500, None)]
)
def test_the_name_of_a_steep_line_avoids_the_other_lines(shift, place):
    """A line close to the right moves the name to the left. A line that rises less has its name at its end."""
    other = steep("other", 0, name_heights=())
    own = steep("own", shift) if shift < 500 else Curve("own", [0, 600], [0.0, 0.4], name_heights=(0.6,))
    assert places_of([other, own]) == {"other": None, "own": place}


def test_a_name_next_to_a_steep_line_stays_on_the_axes_and_avoids_other_names():
    long = "a name that has forty letters, all small"
    assert places_of([steep(long, 0)]) == {long: ("left", 0.6)}
    two = places_of([steep(long, 0), steep("another", 150, colour=1)])
    assert two == {"another": ("left", 0.6), long: None}, "no height has room for the long name"
    together = places_of([steep("one", 100), steep("two", 100, colour=1)])
    assert together["one"] != together["two"]


@pytest.mark.parametrize(
    ("xs", "whole"), [([0, 1, 3], True), ([1.0, 6.0], True), ([1, 7], False), ([0, 0.5, 2], False), ([], False)]
)
def test_an_axis_of_a_few_whole_numbers_has_no_ticks_between_them(xs, whole):
    axis = curves([Curve("a", xs, [0.5] * len(xs))], x_title="number of layers", y_title="")["layout"]["xaxis"]
    assert axis.get("dtick") == (1 if whole else None)


@pytest.mark.parametrize(
    ("dash", "markers", "sign"),
    [
        ("dash", False, "╍\N{THIN SPACE}"),
        ("longdash", False, "╍\N{THIN SPACE}"),
        ("dot", False, "┅\N{THIN SPACE}"),
        ("dash", True, "●"),
        ("solid", False, "●"),
    ],
)
def test_the_sign_before_a_name_shows_the_dash_of_a_line_without_markers(dash, markers, sign):
    figure = curves([Curve("A", [1, 2], [1, 2], dash=dash, markers=markers)], x_title="", y_title="")
    [name] = figure["layout"]["annotations"]
    assert name["text"] == f'<span style="color:{SERIES[0]}">{sign}</span> A'
