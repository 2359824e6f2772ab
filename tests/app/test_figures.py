"""Tests of the functions that draw figures: the numbers, colours and labels in them."""

import io
import json
import math
import re
from base64 import b64decode, b64encode
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from colour_vision import EYES, linear
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from plotly.graph_objects import Figure
from plotly.io import to_json

from app.figures import theme
from app.figures.bars import row_multiples
from app.figures.heat import Row, heat
from app.figures.lines.curve import Curve
from app.figures.lines.curves import curves
from app.figures.lines.machine_stamp import add_machine_stamp
from app.figures.lines.measurements import measurements
from app.figures.lines.spread import spread
from app.figures.picture import HEIGHT, LETTER, WIDTH, curve_url, picture, pixels_url, unknown_url, words_url
from app.figures.reach_rows import MAX_SEPARATE, MAX_TICKS, reach_rows
from app.figures.whiskers import whiskers
from app.ui import chart


@pytest.mark.parametrize(("title", "expected"), [("x", {"title": {"text": "x"}}), ("", {})])
def test_an_empty_title_takes_no_room(title, expected):
    assert theme.axis(title, type="log") == {**expected, "type": "log"}


@pytest.mark.parametrize("hides_band", [False, True])
def test_a_band_stretches_the_axis_only_if_it_is_visible(hides_band):
    line = Curve("a", [1, 2], [1.0, 2.0], low=[0.5, -9.0], high=[1.5, 9.0], hides_band=hides_band)
    low, high = curves([line], x_title="x", y_title="y")["layout"]["yaxis"]["range"]
    assert (low > -9) == (high < 9) == hides_band


def test_a_star_leaves_the_open_points_of_its_line_open():
    line = Curve("a", [1, 2, 3], [1.0, 2.0, 3.0], star_index=0, open_indices=[2])
    [trace] = curves([line], x_title="x", y_title="y")["data"]
    assert trace["marker"]["symbol"] == ["star", "circle", "circle-open"]


def test_bars_show_each_variants_weights_by_token():
    rows = {"a": np.array([0.1, 0.7, np.nan, 0.2]), "b": np.array([0.25, 0.25, 0.25, 0.25])}
    figure = Figure(row_multiples(rows, ["w", "x", "y", "z"], key_title="key", value_title="weight"))
    assert [bar.name for bar in figure.data] == ["a", "b"]
    assert figure.data[0].y.tolist() == [0.1, 0.7, 0.0, 0.2]
    assert figure.layout.xaxis.labelalias == {"0": "w", "1": "x", "2": "y", "3": "z"}
    assert [note.text for note in figure.layout.annotations] == ["a", "b"]
    assert figure.data[0].yaxis != figure.data[1].yaxis
    assert figure.layout.yaxis2.matches == "y"  # Both charts have the same scale.
    assert figure.layout.yaxis.title.text == "weight"
    few = Figure(row_multiples(rows, ["w", "x", "y", "z"], key_title="key", value_title="weight", min_named=0.26))
    assert few.layout.xaxis.labelalias == {"0": " ", "1": "x", "2": " ", "3": " "}


def test_bars_below_zero_have_another_colour():
    [bars] = Figure(row_multiples({"a": np.array([0.4, -0.2])}, list("xy"), key_title="", value_title="")).data
    assert bars.marker.color[0] != bars.marker.color[1]


@pytest.mark.parametrize(
    ("smallest", "log", "written"), [(1e-12, True, ["100%", "1%", "0.01%"]), (2e-8, True, None), (1e-12, False, None)]
)
def test_tiny_percentages_on_a_logarithmic_axis_are_not_written_as_zero(smallest, log, written):
    line = Curve("A", [1, 2], [smallest, 1.0])
    axis = curves([line], x_title="", y_title="", log_y=log, percent=True)["layout"]["yaxis"]
    if written is None:
        assert axis["tickformat"] == "~%"
        return
    texts = [text.replace("\N{NO-BREAK SPACE}", " ") for text in axis["ticktext"]]
    assert texts[:3] == written
    assert texts[-1] == "1 × 10⁻¹⁰%"
    assert [float(value) for value in axis["tickvals"]] == [1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12]


@pytest.mark.parametrize(("percent", "written"), [(True, ["47%", "1.75%"]), (False, ["0.470", "0.0175"])])
def test_the_bars_of_shares_are_written_as_percentages(percent, written):
    row = {"a": np.array([0.47, 0.0175])}
    figure = Figure(row_multiples(row, list("xy"), key_title="", value_title="", percent=percent))
    assert [text for *_key, text in figure.data[0].customdata] == written
    assert (figure.layout.yaxis.tickformat == "~%") == percent


def test_masked_keys_are_crosses_with_one_entry_in_the_legend():
    rows = {"a": np.array([0.5, np.nan, 0.5]), "b": np.array([np.nan, 0.0, 1.0]), "c": np.full(3, 1 / 3)}
    figure = Figure(row_multiples(rows, list("xyz"), key_title="key", value_title="weight", masked="masked"))
    crosses = figure.data[3:]
    assert [(list(each.x), each.yaxis, each.showlegend) for each in crosses] == [
        (["1"], "y", True),
        (["0"], "y2", False),
    ]
    assert not any(bar.showlegend for bar in figure.data[:3])


def test_bars_show_the_keys_with_most_weight_in_text_order():
    row = np.zeros(100)
    row[[70, 3, 41]] = [0.5, 0.3, 0.2]
    figure = Figure(row_multiples({"a": row}, [f"t{i}" for i in range(100)], key_title="", value_title="", max_keys=2))
    assert list(figure.data[0].x) == ["3", "70"]


@pytest.mark.parametrize(("highest", "step"), [(2.0, "D2"), (9e3, "D2"), (1e6, None), (1.0, None)])
def test_a_short_logarithmic_axis_has_ticks_between_powers_of_ten(highest, step):
    line = Curve(name="a", x=[1, 2, 3], y=[1.0, None, highest])
    figure = Figure(curves([line], x_title="", y_title="", log_y=True))
    assert figure.layout.yaxis.dtick == step
    assert Figure(curves([line], x_title="", y_title="")).layout.yaxis.dtick is None


@pytest.mark.parametrize(("lowest", "step"), [(1e-6, 1), (1e-8, 1), (1e-9, 2), (1e-20, 3)])
def test_an_axis_of_powers_of_ten_has_no_ticks_between_them(lowest, step):
    line = Curve(name="a", x=[1, 2], y=[lowest, 1.0])
    assert Figure(curves([line], x_title="", y_title="", log_y=True)).layout.yaxis.dtick == step


@pytest.mark.parametrize(
    ("lowest", "highest", "written"),
    [
        (1e-4, 1e6, ",.3~r"),
        (0.9e-4, 2.0, None),
        (0.9, 1.1e6, None),
        (1.0, 1.1e6, ".3~s"),
        (1.0, 1e15, None),
        (3.0, 3.0, ",.3~r"),
    ],
)
def test_a_logarithmic_axis_writes_decimals_if_they_are_short(lowest, highest, written):
    line = Curve(name="a", x=[1, 2, 3], y=[lowest, 0.0, highest])
    axis = Figure(curves([line], x_title="", y_title="", log_y=True)).layout.yaxis
    assert (axis.tickformat, axis.exponentformat) == (written, None if written else "power")


@pytest.mark.parametrize("ground", ["#ffffff", "#0e1117", "#171614"])
def test_a_line_of_any_colour_has_contrast_on_light_and_dark_pages(ground):
    """Check a contrast of 3:1 by relative luminance (WCAG 2.2, 1.4.11)."""
    behind = linear(ground) @ (0.2126, 0.7152, 0.0722) + 0.05
    for colour in theme.SERIES:
        light = linear(colour) @ (0.2126, 0.7152, 0.0722) + 0.05
        assert max(light, behind) / min(light, behind) >= 3, colour


@pytest.mark.parametrize("eyes", ["none", "deutan", "protan"])
def test_the_colours_of_a_full_comparison_are_distinguishable(eyes):
    """Check the distance in OKLab (Ottosson 2020), where a step of 0.02 is just visible."""
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    opponents = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    seen = [np.clip(EYES[eyes] @ linear(colour), 0, 1) for colour in (*theme.SERIES[:8], theme.SERIES[theme.GREY])]
    places = [opponents @ np.cbrt(cones @ colour) for colour in seen]
    assert min(np.linalg.norm(a - b) for a, b in combinations(places, 2)) > 0.06


def test_a_token_is_not_interpreted_as_markup():
    figure = Figure(row_multiples({"a": np.array([1.0])}, ["<b>x</b>"], key_title="", value_title=""))
    assert "<" not in figure.layout.xaxis.labelalias["0"]


def svg(url):
    """Return the elements of a picture by their names."""
    root = ElementTree.fromstring(unquote(url.removeprefix("data:image/svg+xml,")))
    found: dict[str, list[dict[str, str]]] = {}
    for each in root:
        found.setdefault(each.tag.rpartition("}")[2], []).append(each.attrib)
    return found


def test_a_curve_fits_into_its_picture_and_rises_upwards_away_from_the_question_mark():
    found = svg(curve_url([(0, 1.0), (5, 2.0), (10, 3.0)], *theme.SERIES[:2], dark=False))
    [line], [mark] = found["polyline"], found["text"]
    (x, y), middle, (right, top) = ([float(v) for v in point.split(",")] for point in line["points"].split())
    assert 0 < x < right < WIDTH
    assert 0 < top < y < HEIGHT
    assert middle == pytest.approx([(x + right) / 2, (y + top) / 2], abs=0.1)
    assert [line["stroke"], mark["fill"]] == [*theme.SERIES[:2]]
    assert middle[0] < float(mark["x"]) < WIDTH
    assert middle[1] < float(mark["y"]) < HEIGHT
    assert svg(curve_url([(1, 1.0)], *theme.SERIES[:2], dark=True))["polyline"], "one point has no extent"


def test_words_fit_into_their_picture_and_some_are_marked():
    words = ["The", "clock", "<b>", "stood", "at", "the", "end", "of", "the", "harbour", "road."]
    found = svg(words_url(words, [1, 9], dark=True))
    _ground, *grounds = found["rect"]
    assert len(found["text"]) == len(words)
    assert [each["x"] for each in grounds] == [f"{float(found['text'][i]['x']) - 1:.1f}" for i in (1, 9)]
    ends = [(float(t["x"]) + LETTER * len(word), float(t["y"])) for word, t in zip(words, found["text"], strict=True)]
    assert all(x < WIDTH and y < HEIGHT for x, y in ends)
    light = svg(words_url(words, [], dark=False))
    assert len(light["rect"]) == 1
    assert light["text"][0]["fill"] != found["text"][0]["fill"]


def test_a_question_mark_replaces_a_result():
    [mark] = svg(unknown_url(dark=False))["text"]
    assert float(mark["x"]) == float(mark["y"]) == HEIGHT / 2


def test_pixels_keep_their_colours():
    image = np.zeros((2, 3, 3))
    image[1, 2] = (1.0, 0.5, 2.0)
    found = np.asarray(Image.open(io.BytesIO(b64decode(pixels_url(image).partition(",")[2]))))
    assert found.shape == (2, 3, 3)
    assert found[1, 2].tolist() == [255, 128, 255]
    assert not found[0].any()


@pytest.mark.parametrize("dark", [False, True])
def test_a_picture_distinguishes_sign_size_and_mask(dark):
    values = np.array([[0.0, 1.0], [-1.0, np.nan]])
    drawn = picture(values, dark=dark, side=2)
    ramps = theme.DARK if dark else theme.LIGHT
    expected = [[ramps.positive[0], ramps.positive[-1]], [ramps.negative[-1], ramps.masked]]
    assert drawn.tolist() == np.array(expected).tolist()
    assert picture(np.eye(3), dark=dark).shape[0] >= 320
    quarter, beyond = (picture(np.array([[size]]), dark=dark, side=1, top=4.0)[0, 0] for size in (1.0, 5.0))
    assert quarter.tolist() == np.rint(theme.sample_ramp(ramps.positive, 0.5)).tolist()
    assert beyond.tolist() == list(ramps.positive[-1])


def test_cards_and_board_have_the_same_colours():
    """Check the anchors of the ramps: OKLCH in the board's script, sRGB in the cards."""

    def srgb(lightness, chroma, hue):
        a, b = chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))
        lms = np.array(
            [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]]
        )
        rgb = (
            np.array(
                [
                    [4.0767416621, -3.3077115913, 0.2309699292],
                    [-1.2684380046, 2.6097574011, -0.3413193965],
                    [-0.0041960863, -0.7034186147, 1.707614701],
                ]
            )
            @ (lms @ [lightness, a, b]) ** 3
        )
        rgb = rgb.clip(0, 1)
        return np.rint(255 * np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055))

    script = (Path(theme.__file__).parent.parent / "matrix_board" / "drawing" / "color.js").read_text()
    found = re.findall(r"(positive|negative): ramp\(\[(.*?)\]\)", script, re.S)
    assert len(found) == 4
    for (name, anchors), ramps in zip(found, [theme.LIGHT] * 2 + [theme.DARK] * 2, strict=True):
        stops = [srgb(*map(float, stop.split(","))) for stop in re.findall(r"\[([\d., ]+)\]", anchors)]
        assert np.abs(np.array(getattr(ramps, name)) - np.array(stops)).max() <= 1


def test_the_reach_of_a_token_has_one_row_per_layer():
    first = np.array([2, 1, 0, 1, -1])
    colours = ["#000000", "#111111", "#222222"]
    figure = Figure(reach_rows(first, ["a", "<b>", "c", "d", "e"], colours, x_title="x", y_title="y"))
    nan = np.nan
    rows = np.array([[nan, nan, 0, nan, nan], [nan, 1, 0, 1, nan], [2, 1, 0, 1, nan]])
    np.testing.assert_array_equal(figure.data[0].z, rows)
    assert figure.data[0].text[0][1] == "&lt;b>"


@pytest.mark.parametrize(
    ("n", "ticks"), [(MAX_TICKS, [f"w{i}" for i in range(MAX_TICKS)]), (MAX_TICKS + 1, ["0", str(MAX_TICKS), "7 w7"])]
)
def test_the_axis_of_the_reach_names_few_tokens_or_only_the_chosen_one(n, ticks):
    figure = reach_rows(abs(np.arange(n) - 7), [f"w{i}" for i in range(n)], ["#000000"], x_title="x", y_title="y")
    assert figure["layout"]["xaxis"]["ticktext"] == ticks


@pytest.mark.parametrize(("n", "gap"), [(MAX_SEPARATE, 1), (MAX_SEPARATE + 1, 0)])
def test_many_tokens_have_no_gaps_between_them(n, gap):
    figure = Figure(reach_rows(np.zeros(n), ["a"] * n, ["#000000"], x_title="x", y_title="y"))
    assert figure.data[0].xgap == gap


def test_a_map_has_orange_for_worse_blue_for_better_and_titles_between_its_rows():
    rows = [
        Row(title="A", positions=np.array([0.0, 3.0, np.nan]), notes=["a", "<b>", ""]),
        Row(title="B", positions=np.array([-0.5, 0.2, 1.0]), notes=["d", "e", "f"]),
    ]
    for dark in (False, True):
        figure = Figure(heat(rows, {0: "as it is", 1: "worse"}, dark=dark, x_title="layer", scale="loss"))
        [cells] = figure.data
        nan = np.nan
        np.testing.assert_array_equal(cells.z, [[nan] * 3, [0, 1, nan], [nan] * 3, [-0.5, 0.2, 1]])
        assert cells.text[1][1] == "&lt;b>"
        assert (cells.zmin, cells.zmax) == (-0.5, 1)
        ramps = theme.DARK if dark else theme.LIGHT
        first, last = (cells.colorscale[i][1] for i in (0, -1))
        assert last == "rgb({},{},{})".format(*ramps.negative[-1])
        assert first == "rgb({:.0f},{:.0f},{:.0f})".format(*theme.sample_ramp(ramps.positive, 0.5))
        assert [each.text for each in figure.layout.annotations] == ["A", "B"]
    assert Figure(heat([], {}, dark=False, x_title="", scale="")).data[0].zmin == 0


def test_a_figure_is_encoded_as_by_plotly():
    values = {"y": np.array([0.5, np.nan]), "z": np.array([[1, 2], [3, 4]], np.float32), "empty": np.empty(0)}
    sent = json.loads(chart.to_json({"data": [{"type": "bar", **values}], "layout": {}}))
    assert sent["data"] == [
        {
            "type": "bar",
            "y": {"dtype": "f8", "bdata": b64encode(values["y"]).decode()},
            "z": {"dtype": "f4", "bdata": b64encode(values["z"]).decode(), "shape": "2, 2"},
            "empty": [],
        }
    ]
    plain = {"data": [{"type": "heatmap", "z": values["z"]}], "layout": {"height": 300}}
    expected = json.loads(to_json(Figure(plain), validate=False))
    del expected["layout"]["template"]
    assert json.loads(chart.to_json(plain)) == expected


def test_numbers_that_json_lacks_are_null():
    numbers = [math.nan, math.inf, np.float64(0.5), np.int64(3)]
    assert json.loads(chart.to_json({"data": [{"y": numbers}]})) == {"data": [{"y": [None, None, 0.5, 3]}]}


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-1e6, 1e6)), min_size=1, max_size=40))
@settings(deadline=None)
def test_a_spread_has_the_quartiles_of_numpy(points):
    found = spread(points)
    assert found.x == tuple(sorted({x for x, y in points}))
    for x, *own in zip(found.x, found.low, found.middle, found.high, strict=True):
        expected = np.quantile([y for other, y in points if other == x], (0.25, 0.5, 0.75))
        np.testing.assert_allclose(own, expected, rtol=1e-12, atol=1e-9)


def test_a_spread_keeps_infinite_values_and_is_nan_without_a_value():
    found = spread([(1, math.inf), (1, math.inf), (1, 2.0), (2, math.nan)])
    assert (found.low[0], found.middle[0], found.high[0]) == (math.inf, math.inf, math.inf)
    assert spread([(1, math.inf), (1, 1.0), (1, 2.0)]).middle == (2.0,)
    assert all(map(math.isnan, (found.low[1], found.middle[1], found.high[1])))


def test_a_spread_groups_by_position():
    found = spread([(2, 5.0), (1, 0.0), (1, 10.0), (1, 2.0), (1, 4.0)])
    assert (found.x, found.middle, found.low, found.high) == ((1, 2), (3.0, 5.0), (1.5, 5.0), (5.5, 5.0))
    assert spread([(1, 0.0), (1, 10.0), (1, 2.0), (1, 4.0)], mean=True).middle == (4.0,)
    assert spread([(1, 3.0)]).curve("a", 0).low is None
    assert found.curve("a", 0).low == (1.5, 5.0)


def drawn_of(rows, **how):
    frame = pd.DataFrame(rows, columns=["who", "n", "found"])
    made = measurements(frame, "n", "found", "who", x_title="tokens n", y_title="ms", **how)
    return None if made is None else Figure(made)


def test_rows_at_one_position_become_their_median_with_a_band():
    rows = [("a", n, float(n * i)) for n in (4, 2) for i in range(1, 6)]
    rows += [("b", 2, None), ("b", 4, float("nan"))]
    drawn = drawn_of(rows, log_x=True)
    line = next(trace for trace in drawn.data if trace.name == "a")
    assert (list(line.x), list(line.y)) == ([2.0, 4.0], [6.0, 12.0])
    band = next(trace for trace in drawn.data if trace.fill == "toself")
    assert list(band.y) == [8.0, 16.0, 8.0, 4.0]
    assert not any(trace.name == "b" for trace in drawn.data)
    assert drawn.layout.xaxis.title.text == "tokens n"


@pytest.mark.parametrize(("joined", "width"), [(True, 2), (False, 0)])
def test_points_without_an_order_are_not_joined(joined, width):
    [line] = [trace for trace in drawn_of([("a", 0, 1.0), ("a", 1, 3.0)], joined=joined).data if trace.name == "a"]
    assert "markers" in line.mode
    assert line.line.width == width
    repeated = drawn_of([("a", at, float(i)) for at in (0, 1) for i in range(5)], joined=joined)
    assert any(trace.fill == "toself" for trace in repeated.data) == joined, "points have no band"


def test_text_labels_become_bars_with_whiskers():
    rows = [(who, name, y) for who in "ab" for name in ("one", "two") for y in (1.0, 2.0, 5.0)]
    drawn = drawn_of([*rows, ("a", "one", 0.0)], bars=True, log_y=True)
    assert [bar.name for bar in drawn.data] == ["a", "b"]
    assert list(drawn.data[0].y) == [2.0, 2.0]
    assert list(drawn.data[0].error_y.array) == [1.5, 1.5]
    assert list(drawn.data[0].error_y.arrayminus) == [0.5, 0.5]
    assert list(drawn.layout.xaxis.ticktext) == ["one", "two"]


def test_bars_of_one_measurement_show_its_number():
    drawn = Figure(whiskers({"a": spread([(0, 12_345.6), (1, 0.12345)])}, ["x", "y"], x_title="", y_title=""))
    assert list(drawn.data[0].text) == ["12,346", "0.123"]
    assert not drawn.data[0].error_y.visible
    several = Figure(whiskers({"a": spread([(0, 1.0), (0, 2.0)])}, ["x"], x_title="", y_title=""))
    assert several.data[0].text is None


@pytest.mark.parametrize("labels", [["x", "y"], []])
def test_shares_are_percentages_on_screen_and_fractions_in_the_data(labels):
    frame = pd.DataFrame({"at": labels or [1, 2], "share": [0.5, 0.12345], "by": "a"})
    made = measurements(frame, "at", "share", "by", x_title="", y_title="", bars=bool(labels), percent=True)
    trace = made["data"][-1]  # The line is drawn after its band.
    assert list(trace["y"]) == [0.5, 0.12345]
    assert made["layout"]["yaxis"]["tickformat"] == "~%"
    texts = [each[-1] if labels else each for each in trace["customdata"]]
    assert texts == (["50%", "12.3%"] if labels else ["50.00%", "12.35%"])


def test_no_data_gives_no_figure():
    assert drawn_of([]) is None
    assert drawn_of([("a", "x", -1.0)], bars=True, log_y=True) is None
    assert drawn_of([("a", -1.0, 1.0), ("a", None, 1.0)], log_x=True) is None
    assert drawn_of([("a", -1.0, -1.0)]) is not None


def test_a_mark_appears_with_the_first_point_of_a_growing_chart():
    def marks(points):
        figure = curves([Curve("a", points, points)], x_title="x", y_title="y", height=300, mark=(2.0, "reference"))
        return [each["text"] for each in figure["layout"]["annotations"] if each["text"] == "reference"]

    assert marks([]) == []
    assert marks([1.0, 3.0]) == ["reference"]


def test_a_stamp_on_a_narrow_screen_begins_left_of_the_plot_and_has_one_fact_per_line():
    figure = curves([Curve("a", [1.0, 2.0], [1.0, 2.0])], x_title="x", y_title="y")
    wide, narrow = (
        add_machine_stamp(figure, [["on A & B", "today"]], narrow=each)["layout"]["annotations"][-1]
        for each in (False, True)
    )
    assert (wide["text"], narrow["text"]) == ("on A &amp; B · today", "on A &amp; B<br>today")
    assert wide["xshift"] == 0
    assert narrow["xshift"] < 0


@pytest.mark.parametrize("log_x", [False, True])
def test_arrows_mark_lines_that_continue_beyond_the_right_end_of_the_axis(log_x):
    lines = [
        Curve("A", [1, 4], [1, 4]),
        Curve("B", [1, 2], [2, 2], colour=1),
        Curve("C", [1, 2], [3, 3], colour=2),
        Curve("D", [3], [1], colour=3),
        Curve("E", [1, 2, 4], [1, 2, None], colour=4),
    ]
    figure = curves(lines, x_title="x", y_title="y", log_x=log_x, right=2)
    [arrow] = [each for each in figure["layout"]["annotations"] if "▶" in each["text"]]
    assert arrow["text"] == f'<span style="color:{theme.style(0).colour}">▶</span>'
    assert (arrow["x"], arrow["y"]) == (math.log10(2) if log_x else 2, pytest.approx(2.5 if log_x else 2))


def test_a_tooltip_begins_with_the_name_of_its_line():
    [trace] = curves([Curve("A", [1], [2])], x_title="x", y_title="y")["data"]
    assert trace["hovertemplate"] == "<b>A</b><br>%{x}: %{customdata}<extra></extra>"
