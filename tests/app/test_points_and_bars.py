"""Tests of the stories' figures: thinned points with their ends, bars with repeated labels, axes of each matrix."""

import numpy as np
import pytest
from driver import joined
from plotly.graph_objects import Figure

from app.board_messages.packing import pack
from app.figures.bars import grouped_bars
from app.figures.lines.curves import Curve, curves
from app.figures.lines.spread import Spread
from app.figures.scatter import Points, scatter
from app.figures.whiskers import whiskers
from app.matrix_board import Panel

TITLES = {"x_title": "true", "y_title": "estimate"}


def test_many_points_are_thinned_but_both_ends_stay():
    x = np.random.default_rng(0).exponential(size=(100, 100))
    cloud = Figure(scatter([Points(name="a", x=x, y=2 * x)], diagonal="equal", most=50, **TITLES)).data[0]
    assert len(cloud.x) == 50
    assert (min(cloud.x), max(cloud.x)) == (x.min(), x.max())
    np.testing.assert_allclose(cloud.y, 2 * np.asarray(cloud.x))


def test_the_diagonal_spans_the_points():
    clouds = [
        Points(name="a", x=np.array([3.0, 1.0]), y=np.zeros(2)),
        Points(name="b", x=np.array([7.0]), y=np.ones(1)),
    ]
    line = Figure(scatter(clouds, diagonal="equal", **TITLES)).data[-1]
    assert line.name == "equal"
    assert list(line.x) == list(line.y) == [1.0, 7.0]


@pytest.mark.parametrize(("log", "left"), [(False, [-1.0, 0.0, 2.0, 3.0]), (True, [2.0])])
def test_values_that_an_axis_cannot_show_are_left_out(log, left):
    x, y = np.array([2.0, np.nan, -1.0, 0.0, 3.0]), np.array([1.0, 1.0, 1.0, 1.0, -2.0])
    figure = Figure(scatter([Points(name="a", x=x, y=y)], diagonal="equal", log=log, **TITLES))
    assert list(figure.data[0].x) == left


def test_nothing_to_show_draws_no_diagonal():
    drawn = scatter([Points(name="a", x=np.zeros(3), y=np.ones(3))], diagonal="=", log=True, **TITLES)
    assert len(Figure(drawn).data) == 1


def test_notes_follow_their_points():
    cloud = Points(name="a", x=np.array([3.0, 1.0]), y=np.array([0.0, 5.0]), notes=["<b>three</b>", "one"])
    drawn = Figure(scatter([cloud], diagonal="", **TITLES)).data[0]
    assert list(zip(drawn.x, drawn.customdata, strict=True)) == [(1.0, "one"), (3.0, "&lt;b>three&lt;/b>")]


def test_repeated_labels_have_a_bar_each():
    figure = Figure(grouped_bars({"a": [1, 2, 3]}, ["the", "cat", "the"], **TITLES))
    assert len(set(figure.data[0].x)) == 3
    assert [text[1] for text in figure.data[0].customdata] == ["the", "cat", "the"]
    assert figure.layout.xaxis.labelalias == {"0": "the", "1": "cat", "2": "the"}


def test_each_matrix_has_its_own_axis_titles():
    panels = [
        Panel("0", "L", "", np.ones((3, 2)), row_title="query", col_title="landmark"),
        Panel("1", "", "", np.eye(2)),
    ]
    header, _ = joined(*pack(panels, None, None, key="k"))
    assert [(p["row_title"], p["col_title"]) for p in header["panels"]] == [("query", "landmark"), (None, None)]


def test_numbers_on_hover_are_written_as_in_sentences():
    values = [1390.0, -4.41e-7]
    written = ["1,390", "\N{MINUS SIGN}4.41\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁷"]
    [bars] = Figure(grouped_bars({"a": values}, ["x", "y"], **TITLES)).data
    assert [text[2] for text in bars.customdata] == written
    spread = Spread(x=(0.0, 1.0), middle=tuple(values), low=tuple(values), high=tuple(values))
    [whisker] = Figure(whiskers({"a": spread}, ["x", "y"], **TITLES)).data
    assert [text[1] for text in whisker.customdata] == written
    [line] = Figure(curves([Curve("a", [1.0, 2.0], values)], **TITLES)).data
    assert list(line.customdata) == written
