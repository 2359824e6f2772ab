"""Tests of the JavaScript functions that map the numbers of a matrix to colours, evaluated in the browser."""

import pytest
from conftest import ROOT

from app.page_script import bundling

SCRIPT = bundling.script(ROOT / "app" / "matrix_board" / "drawing" / "color.js")
FACTS = {"highest": 1.0, "lowest": 0.0, "smallest": 0.01, "transform": "linear", "signed": False}


@pytest.fixture(scope="module")
def evaluate(window):
    page = window.new_page()
    yield lambda expression, *given: page.evaluate(f"(given) => {{ {SCRIPT}; return {expression}; }}", given)
    page.close()


@pytest.fixture
def scale(evaluate):
    return lambda **facts: evaluate("makeScale(given[0])", FACTS | facts)


@pytest.fixture
def colour(evaluate):
    """Return a function that computes the colour of a number on a scale, and the end colours of the light palette."""
    table = """(() => {
        const [facts, value] = given;
        const palette = PALETTES.light;
        const code = HALF.findIndex((half, i) => i <= LARGEST && half === Math.abs(value) * 256);
        const table = colourTable(makeScale(facts), 1 / 256, palette);
        const ends = {
            over: packColour(palette.over), under: packColour(palette.under), top: packColour(palette.positive[255]),
        };
        return { colour: table[value < 0 ? code | 0x8000 : code], ...Object.fromEntries(
            Object.entries(ends).map(([name, end]) => [name, end >>> 0])) };
    })()"""
    return lambda value, **facts: evaluate(table, FACTS | facts, value)


def test_a_weight_has_one_colour_with_and_without_negative_weights(colour):
    without_negative, with_negative = colour(0.5), colour(0.5, lowest=-0.75, signed=True)
    assert without_negative["colour"] == with_negative["colour"]
    assert colour(-0.5, lowest=-0.75, signed=True)["colour"] != without_negative["colour"]


@pytest.mark.parametrize(
    ("facts", "top", "over", "under"),
    [
        ({}, 1.0, 0, 0),
        ({"lowest": -2.0}, 2.0, 0, 0),
        ({"ceiling": 0.5}, 0.5, 1.0, 0),
        ({"ceiling": 0.5, "lowest": -0.5}, 0.5, 1.0, 0),
        ({"ceiling": 0.5, "lowest": -0.75, "highest": 0.25}, 0.5, 0, -0.75),
        ({"ceiling": 1.0}, 1.0, 0, 0),
        ({"ceiling": 1.5}, 1.0, 0, 0),
        ({"highest": 0.0}, 1.0, 0, 0),
    ],
)
def test_a_scale_ends_at_its_ceiling_if_values_reach_it(scale, facts, top, over, under):
    found = scale(**facts)
    assert (found["top"], found["over"], found["under"]) == (top, over, under)


def test_values_beyond_either_end_have_their_own_colour(colour):
    facts = {"ceiling": 0.5, "lowest": -1.0, "signed": True}
    above, at, below = (colour(value, **facts) for value in (0.75, 0.5, -0.75))
    assert above["colour"] == above["over"]
    assert at["colour"] == at["top"]
    assert below["colour"] == below["under"]
    assert len({above["over"], above["under"], above["top"]}) == 3


def test_a_value_rounded_up_to_the_ceiling_is_not_beyond_it(evaluate):
    beyond = "[1.0004, 1.002].map(makeScale(given[0]).isBeyond)"
    assert evaluate(beyond, FACTS | {"ceiling": 1.0, "highest": 2.0}) == [False, True]


@pytest.mark.parametrize(("transform", "middle"), [("linear", 0.25), ("sqrt", 0.5), ("log", 0.7)])
def test_a_position_on_the_ramp_follows_the_transform(evaluate, transform, middle):
    places = evaluate("[0, 0.25, 1, 9].map(makeScale(given[0]).position)", FACTS | {"transform": transform})
    assert places == [0, pytest.approx(middle, abs=0.035), 1, 1]
