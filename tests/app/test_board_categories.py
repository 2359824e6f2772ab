"""Tests of boards whose numbers are categories, such as the rules of a mask: exact codes, names and colours."""

import numpy as np
import pytest
import torch
from colour_vision import EYES, linear
from driver import joined

import attention_core as ac
from app.board_messages.packing import pack
from app.figures.categories import PRIMITIVES, layer_colours
from app.figures.theme import DARK, LIGHT, sample_ramp
from app.matrix_board import Panel
from app.matrix_board.pair_kinds import PRIMITIVE_NAMES, PairKinds


def read(panel: Panel) -> tuple[dict, np.ndarray]:
    header, payload = joined(*pack([panel], None, None, key="k"))
    [panel] = header["panels"]
    return panel, np.frombuffer(payload, "<f2").astype(float) * 2.0 ** panel["exponent"]


@pytest.mark.parametrize("most", [1, 2, 3, 15, 16, 1000, 2047])
def test_every_code_is_sent_exactly(most):
    codes = np.arange(most + 1, dtype=np.float32)[None]
    _, found = read(Panel("p", "P", "", codes))
    assert found.tolist() == codes[0].tolist()


def test_borders_are_sent_with_their_panel():
    assert read(Panel("p", "P", "", np.eye(4), borders=(1, 3)))[0]["borders"] == [1, 3]
    assert read(Panel("p", "P", "", np.eye(4)))[0]["borders"] == []


def test_a_pair_of_two_primitives_has_the_colour_of_the_first_and_names_both():
    band, column = np.tri(3, dtype=bool), np.zeros((3, 3), bool)
    column[:, 0] = column[0, 2] = True
    parts = {"window": band, "sink": column, "global": np.zeros((3, 3), bool)}
    kinds = PairKinds([parts])
    codes = kinds.codes(parts)
    named = kinds.categories
    shown = [[named[int(code) - 1].name if code else "" for code in row] for row in codes]
    assert shown == [
        ["window + sink", "", "sink"],
        ["window + sink", "window", ""],
        ["window + sink", "window", "window"],
    ]
    both = next(c for c in named if "+" in c.name)
    assert (both.light, both.dark) == PRIMITIVES["window"]
    assert [c.name for c in named if c.listed] == ["window", "sink"], "what allows nothing is not in the legend"


@pytest.mark.parametrize("variant", [each for each in ac.all_variants() if each.primitives], ids=lambda each: each.key)
def test_every_primitive_has_its_words_and_its_colour(variant):
    attention = ac.get(variant.key)
    q, k = torch.randn(2, 1, 40, 8)
    for name in variant.primitives(q, k, attention.params, causal=False):
        assert name in PRIMITIVE_NAMES, "app/matrix_board/pair_kinds.py"
        assert name in PRIMITIVES, "app/figures/categories.py"


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb.clip(0, 1)
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


TOGETHER = [
    ("window", "stride"),
    ("block", "summary"),
    ("window", "global", "random"),
    ("window", "sink"),
    ("bucket", "chunk", "itself", "round", "missed"),
]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("names", TOGETHER, ids="-".join)
def test_colour_blind_viewers_distinguish_the_kinds_of_one_variant(names, mode):
    ground = ("#f4f4f1", "#1d1f27")[mode]
    colours = {name: PRIMITIVES[name][mode] for name in names} | {"nothing": ground}
    for matrix in EYES.values():
        seen = {name: lab(matrix @ linear(colour)) for name, colour in colours.items()}
        for a in seen:
            for b in seen:
                assert a >= b or np.linalg.norm(seen[a] - seen[b]) > 14, (a, b)


@pytest.mark.parametrize("count", range(1, 9))
def test_each_layer_has_its_own_colour_in_order_of_contrast(count):
    for mode in (0, 1):
        lightness = [lab(linear(pair[mode]))[0] for pair in layer_colours(count)]
        assert lightness == sorted(lightness, reverse=bool(mode))
        assert len(set(lightness)) == count


def seen_by(kind, colours):
    """Return the CIELAB coordinates of colours as seen with a kind of colour vision, one per row."""
    rgb = [linear("#{:02x}{:02x}{:02x}".format(*map(round, colour))) for colour in np.atleast_2d(colours)]
    return np.array([lab(EYES[kind] @ each) for each in rgb])


RAMPS = [pytest.param(LIGHT, (255, 255, 255), id="light"), pytest.param(DARK, (23, 22, 20), id="dark")]


@pytest.mark.parametrize(("ramps", "page"), RAMPS)
@pytest.mark.parametrize("kind", EYES)
def test_negative_and_positive_weights_look_different(ramps, page, kind):
    places = np.linspace(0, 1, 33)
    positive, negative = (seen_by(kind, sample_ramp(ramp, places)) for ramp in (ramps.positive, ramps.negative))
    apart = np.linalg.norm(negative[:, None] - positive[None], axis=-1)
    assert apart[places >= 0.2].min() > 10
    for arm in (positive, negative):
        assert (np.diff(np.abs(arm[:, 0] - seen_by(kind, page)[0, 0])) > 0).all(), "larger stands out more"


@pytest.mark.parametrize(("ramps", "page"), RAMPS)
def test_equal_steps_of_a_ramp_look_equal_and_masked_cells_are_paler(ramps, page):
    for ramp in (ramps.positive, ramps.negative):
        lightness = seen_by("none", sample_ramp(ramp, np.linspace(0, 1, 9)))[:, 0]
        steps = np.abs(np.diff(lightness))
        assert steps.max() < 2 * steps.min()
    paper, masked, zero = (seen_by("none", colour)[0, 0] for colour in (page, ramps.masked, ramps.positive[0]))
    assert abs(masked - paper) < abs(zero - paper)
