"""Tests of three kinds of figures on the Inside page: scatter plots, bar charts, and boards of matrices."""

import numpy as np
import pytest
from driver import joined
from plotly.graph_objects import Figure

import app.figures.scatter
from app.board_messages.packing import pack
from app.figures.bars import grouped_bars
from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.figures.lines.spread import Spread
from app.figures.scatter import scatter
from app.figures.whiskers import whiskers
from app.matrix_board import Panel

TITLES = {"x_title": "true", "y_title": "estimate"}


def test_many_points_are_thinned_but_both_ends_stay(monkeypatch):
    monkeypatch.setattr(app.figures.scatter, "MAX_POINTS", 50)
    x = np.random.default_rng(0).exponential(size=(100, 100))
    cloud, line = Figure(scatter("a", x, 2 * x, diagonal="equal", **TITLES)).data
    assert len(cloud.x) == 50
    assert (min(cloud.x), max(cloud.x)) == (x.min(), x.max())
    np.testing.assert_allclose(cloud.y, 2 * np.asarray(cloud.x))
    assert line.name == "equal"
    assert list(line.x) == list(line.y) == [x.min(), x.max()]


def test_values_that_an_axis_cannot_show_are_left_out():
    x, y = np.array([2.0, np.nan, -1.0, 0.0, 3.0]), np.array([1.0, 1.0, 1.0, 1.0, -2.0])
    figure = Figure(scatter("a", x, y, diagonal="equal", **TITLES))
    assert list(figure.data[0].x) == [2.0]
    assert len(Figure(scatter("a", x[1:], y[1:], diagonal="equal", **TITLES)).data) == 1, "no points, no diagonal"


def test_repeated_labels_have_a_bar_each():
    figure = Figure(grouped_bars({"a": [1, 2, 3]}, ["the", "cat", "the"], **TITLES))
    assert len(set(figure.data[0].x)) == 3
    assert [text[1] for text in figure.data[0].customdata] == ["the", "cat", "the"]
    assert figure.layout.xaxis.labelalias == {"0": "the", "1": "cat", "2": "the"}


@pytest.mark.parametrize(("bars", "angle", "text"), [(4, 0, "keys and their values"), (5, -45, "keys and thei…")])
def test_labels_of_many_bars_are_cut_and_turned(bars, angle, text):
    figure = Figure(grouped_bars({"a": [1] * bars}, ["keys and their values"] * bars, **TITLES))
    assert figure.layout.xaxis.tickangle == angle
    assert set(figure.layout.xaxis.labelalias.values()) == {text}


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


def test_texts_of_near_points_are_on_different_sides_only_in_a_narrow_chart():
    line = Curve("a", [0.0, 0.4, 0.46, 1.0], [1.0, 1.0, 1.0, 1.0], texts=["", "192", "128", ""])

    def sides(width):
        figure = curves([line], x_title="x", y_title="y", width=width)
        return figure["data"][0]["textposition"][1:3]

    wide, narrow = sides(960), sides(280)
    assert wide[0] == wide[1]
    assert narrow[0] != narrow[1]
