"""Tests of a digit on the Picture page: its pixels, the attention of each variant over it, and the input panel."""

import math

import numpy as np
import pytest
import torch
from driver import board_settings, open_page, spoken, visit
from test_picture_page import sent

import attention_core as ac
from app.jobs import dispatch
from app.lessons.screen import Screen
from app.measures import verdict
from app.ui.sources import trained_form
from attention_core.analysis.denoised_image import maps_with_mean
from attention_core.experiments import learning
from attention_core.inputs.trained import TrainedSource, run_from_words
from attention_core.learning.tasks.digits import TRAINED, images
from pages.picture.measures import MEASURES

WORDS = ["digits", "softmax", "steps~1", "heads~2"]
LINK = {
    "input": "trained",
    "trained": WORDS,
    "sequence": "3",
    "layer": "1",
    "head": "1",
    "variants": ["softmax", "linear", "local~window~2"],
}
N, SIDE = 64, 8


@pytest.fixture(autouse=True, scope="module")
def models():
    """Train the models of this file for one step each."""
    for words in (WORDS, ["digits", "softmax", "steps~1"], ["digits", "local~window~3", "steps~1"]):
        spec = run_from_words(words)
        dispatch.cache_rows("learning", trained_form.task_of(spec), learning.run(trained_form.task_of(spec)))


def softmax_and_local(record, window):
    """Return the attention of softmax and of a window of the record, ``[H, n, n]``."""
    scores = record.q @ record.k.mT / math.sqrt(record.q.shape[-1])
    places = torch.arange(N)
    hidden = (places[:, None] - places).abs() > window
    return scores.softmax(-1), scores.masked_fill(hidden, -math.inf).softmax(-1)


def maps_and_pixels(part):
    """Return the maps on a tile, with the mean as the last one, and its pixels."""
    _header, payload = part
    ends = np.cumsum([4 * (N + 1), (N + 1) * N])
    peaks, levels, pixels = np.split(np.frombuffer(payload, np.uint8), ends)
    return levels.view(np.int8).reshape(N + 1, N) / 127 * peaks.view("<f4")[:, None], pixels / 255


@pytest.mark.parametrize(("head", "heads"), [("1", slice(1, 2)), ("-1", slice(None))])
def test_each_tile_shows_the_digit_its_attention_and_its_output_error(head, heads):
    at = visit("picture", {**LINK, "head": head, "causal": "1", "positions": "rope"})
    header, parts = sent(at)
    assert (header["side"], header["cell"], header["channels"]) == (SIDE, 1, 1)
    texts = board_settings(at, "picture.board")["texts"]
    assert texts["hint"] == "Point at a pixel to see what it attends to."
    assert texts["touch_hint"] == "Tap a pixel to see what it attends to."
    record = TrainedSource.of(*WORDS, sequence=3, layer=1).load()
    matrices = softmax_and_local(record, 2)
    exact, output = (matrix[heads] @ record.v[heads] for matrix in matrices)
    error = ((output - exact).norm() / exact.norm()).item()
    assert parts["softmax"][0]["number"] == "reference"
    shown, other = (
        float(parts[key][0]["number"].removeprefix("error ").removesuffix("%")) for key in ("local", "linear")
    )
    assert shown == pytest.approx(100 * error, rel=0.06)
    for key, matrix in zip(("softmax", "local"), matrices, strict=True):
        maps, pixels = maps_and_pixels(parts[key])
        mean = matrix[heads].mean(0).numpy()
        np.testing.assert_allclose(maps[:N], mean, atol=mean.max() / 100)
        np.testing.assert_allclose(maps[N], mean.mean(0), atol=mean.mean(0).max() / 100)
        np.testing.assert_allclose(pixels, np.frombuffer(parts["original"][1], np.uint8) / 255)
    every, digits = images()
    [place] = [i for i in range(TRAINED, len(every)) if np.allclose(every[i], pixels, atol=0.01)]
    assert parts["original"][0]["title"] == f"Digit {digits[place]}"
    assert ("the average of all heads" in spoken(at, "caption")) == (head == "-1")
    closest = "local" if shown < other else "linear"
    assert f"**{parts[closest][0]['title']} is closest to softmax**" in spoken(at)


def test_the_images_are_in_the_chosen_order_and_name_the_reference_of_their_error():
    parts = sent(visit("picture", {**LINK, "variants": ["reformer", "linear", "softmax", "topk~k~60"]}))[1]
    assert list(parts) == ["original", "reformer", "linear", "softmax", "topk"]
    assert "of the size (norm) of shared-QK softmax's output." in parts["reformer"][0]["details"]


def test_square_windows_follow_the_rows_and_columns_of_the_digit():
    parts = sent(visit("picture", {**LINK, "p_squares": "1"}))[1]
    assert "Local 3 × 3" in [header["title"] for header, _payload in parts.values()]


def test_a_model_trained_with_another_variant_is_named():
    at = visit("picture", {**LINK, "trained": ["digits", "local~window~3", "steps~1"], "head": "0"})
    assert "Its own attention matrix is that of Local, not of softmax." in spoken(at, "caption")
    assert sent(at)[1]["softmax"][0]["number"] == "reference"


@pytest.mark.parametrize(
    ("view", "text", "links"),
    [
        ("explain", "Each of the 64 pixels is a token, in reading order.", []),
        ("numbers", "The page Matrices shows the attention in this digit", [("matrices", "more=numbers")]),
        ("budget", "a digit has no noise", [("error", "fidelity=output")]),
        ("download", "The page Matrices shows the attention in this digit", [("matrices", "more=download")]),
    ],
)
def test_each_view_shows_the_tokens_or_links_to_a_page_with_the_same_attention(view, text, links):
    at = visit("picture", {**LINK, "p_below": view, "positions": "rope"})
    assert text in spoken(at)
    found = [link for link in at.main.get("page_link") if "Open in" in link.proto.label]
    assert [link.proto.page for link in found] == [page for page, _field in links]
    for link, (_page, field) in zip(found, links, strict=True):
        assert field in link.proto.query_string
        assert "positions" not in link.proto.query_string


def test_the_panel_switches_between_an_image_and_a_digit():
    at = open_page("picture", grid=16, p_squares=False, trained=run_from_words(["recall", "softmax", "steps~1"]))
    assert "peak signal-to-noise ratio" in spoken(at, "caption")
    at.segmented_control(key="picture.input").set_value("trained").run()
    assert at.session_state["trained"].model.task == "digits"
    assert at.session_state["input"] == "trained"
    assert "Layer" in [each.label for each in at.sidebar.selectbox]
    assert "Task" not in [each.label for each in at.sidebar.selectbox]
    assert spoken(at).count("closest to softmax") == 1
    assert "peak signal-to-noise ratio" not in spoken(at, "caption")
    at.sidebar.segmented_control[0].set_value("image").run()
    assert at.session_state["input"] == "image"
    assert "peak signal-to-noise ratio" in spoken(at, "caption")


@pytest.mark.parametrize(("kind", "offers"), [("trained", True), ("text", False), ("image", False)])
def test_other_models_show_a_photograph_and_a_link_to_training(kind, offers):
    at = visit(
        "picture", {"grid": "16", "input": kind, "trained": ["recall", "softmax", "steps~1"], "variants": "softmax"}
    )
    assert "noisy" in sent(at)[1]
    assert ("was trained on “Associative recall”" in spoken(at, "caption")) == offers
    found = [link.proto for link in at.main.get("page_link")]
    assert [(link.page, link.label) for link in found] == [("learn", "Train on digits (Learn page)")] * offers
    assert all("l_task=digits" in link.query_string for link in found)


def test_a_bad_link_of_a_digit_shows_a_notice_and_an_image():
    at = visit("picture", {**LINK, "grid": "16", "trained": ["digits", "nothing"]})
    assert "trained" in at.warning[0].value
    assert "noisy" in sent(at)[1]


def test_a_lesson_cannot_ask_for_the_psnr_of_a_digit():
    link = "&".join(f"trained={word}" for word in WORDS)
    screen = Screen.from_link(f"picture?input=trained&{link}")
    assert MEASURES["psnr"].number(screen, ac.get("softmax")) is None
    assert "Choose a photograph" in verdict(MEASURES["psnr"], None, None)


def test_the_last_map_is_the_mean_of_all_others():
    weights = np.array([[0.5, 0.5, 0.0, np.nan], [0.0, 1.0, 0.0, 0.0], [-0.5, 0.5, 0.5, 0.5], [0, 0, 0, 0]], np.float32)
    maps = maps_with_mean(weights)
    np.testing.assert_allclose(maps.peaks, [0.5, 1.0, 0.5, 0.0, 0.5])
    np.testing.assert_array_equal(maps.levels[4], [0, 127, round(127 * 0.125 / 0.5), round(127 * 0.125 / 0.5)])
    np.testing.assert_array_equal(maps.levels[:4], [[127, 127, 0, 0], [0, 127, 0, 0], [-127, 127, 127, 127], [0] * 4])
