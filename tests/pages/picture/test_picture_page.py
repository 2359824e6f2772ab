"""Tests of the Picture page: the images and their numbers, the pinned pixel, budgets, square windows and own photos."""

import io
import re
from functools import partial

import numpy as np
import pytest
from driver import board_settings, charts, numbers, open_page, table, unpacked, visit
from PIL import Image

import attention_core as ac
from app.ui.input_forms import PHOTO
from attention_core.analysis.denoised_image import attention_maps, denoise
from attention_core.inputs import ImageSource
from attention_core.limits import HOSTED
from pages.picture import budget_words

SMALL = ImageSource(size=16)
PAIR = (ac.get("softmax"), ac.get("local", window=4))
open_picture = partial(open_page, "picture", grid=16, p_squares=False, variants=PAIR)


def sent(at):
    """Return the header of the board, and the header and payload of each image by key, in the board's order."""
    protos = [each.proto for each in at.get("bidi_component") if each.proto.bytes]
    [board] = [each.bytes for each in protos if each.component_name == "attention_lab_pictures"]
    parts = [unpacked(each.bytes) for each in protos if "-board_part.picture.board." in each.id]
    known = {header["digest"]: (header, payload) for header, payload in parts if header.get("kind") == "part"}
    header, _ = unpacked(board)
    return header, {known[digest][0]["key"]: known[digest] for digest in header["digests"]}


def file_of(image):
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_every_image_is_sent_with_its_number_and_its_attention_maps():
    at = open_picture()
    header, parts = sent(at)
    assert list(parts) == ["original", "noisy", "softmax", "local"]
    texts = board_settings(at, "picture.board")["texts"]
    assert texts["hint"] == "Point at a pixel to see what it attends to."
    assert texts["touch_hint"] == "Tap a pixel to see what it attends to."
    assert (header["side"], header["cell"], header["channels"]) == (16, 1, 3)
    for attention in PAIR:
        found, payload = parts[attention.key]
        expected = denoise(SMALL.load(), SMALL.clean(), attention)
        assert found["number"] == f"{expected.psnr:.1f} dB"
        maps = attention_maps(SMALL.load(), attention)
        peaks, levels, error, image = np.split(np.frombuffer(payload, np.uint8), np.cumsum([4 * 256, 256**2, 256]))
        np.testing.assert_array_equal(peaks.view("<f4"), maps.peaks)
        np.testing.assert_array_equal(levels.view(np.int8).reshape(256, 256), maps.levels)
        np.testing.assert_allclose(error / 255, (expected.error.ravel() / 0.3).clip(0, 1), atol=0.003)
        np.testing.assert_allclose(image / 255, expected.image.ravel().clip(0, 1), atol=0.003)


def test_the_first_visit_shows_eight_images_of_variants_and_which_of_them_are_good():
    at = visit("picture", {})
    assert len(sent(at)[1]) == 2 + 8
    assert len(charts(at)) == 1, "the chart of PSNR and cost is open"
    texts = [each.value for each in at.markdown]
    assert (
        "**At these settings, Softmax's image is closest to the original (25.2 dB).** **Another setting comes closer: "
        "Top-k with k = 252 (25.5 dB).**  \n**Linear and Performer return almost uniform images.**"
    ) in texts
    assert (
        "With **Linear**, every query weights all pixels almost equally: the median of the largest weight is 1.1 times "
        "the average weight (softmax: 84 times). **Performer** mostly uses one of its 64 random features, so all "
        "queries have almost the same weights. **Top-k** keeps only each query's largest weights. With its best "
        "setting, the image is better than softmax's, so softmax's smallest weights make the image worse. With "
        "**Atrous** and stride 8, each query averages only columns that are 8 pixels apart, which can leave vertical "
        "stripes. In **Linear**'s image, the islands of another tone are dark pixels: the function elu + 1 maps the "
        "negative numbers of their queries to almost 0."
    ) in texts
    assert "**Local with window 252 reaches softmax's PSNR at 22% of its cost.**" in texts


def test_the_first_visit_stays_within_the_limits_of_a_hosted_server(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    at = visit("picture", {})
    assert len(at.session_state["variants"]) == HOSTED.compared_variants


def test_a_square_window_is_shown_next_to_one_along_the_row_with_at_most_as_many_pixels():
    at = open_picture(p_squares=True)
    _, parts = sent(at)
    found = {header["title"]: header for header, _ in parts.values()}
    assert list(found)[:2] == ["Original", "Noisy"]
    assert set(list(found)[2:]) == {"Softmax", "Local 1-D", "Local 3 × 3"}  # 9 pixels: 4 on each side, or 3 × 3
    row, square = found["Local 1-D"], found["Local 3 × 3"]
    assert [each["knob"] is None for each in (row, square)] == [False, True]
    d = SMALL.load().q.shape[-1]
    share = ac.get("local", window=4).cost(16**2, d).multiply_adds / ac.get("softmax").cost(16**2, d).multiply_adds
    assert row["note"] == f"cost {share:.0%}"
    assert square["note"].endswith("% · window 3 × 3")
    assert [each["settings_label"] for each in (row, square)] == ["Settings of Local", ""]


def test_the_images_are_in_the_order_of_the_chosen_variants():
    at = open_picture(variants=(ac.get("softmax"), ac.get("linear"), ac.get("local", window=1)))
    assert list(sent(at)[1])[2:] == ["softmax", "linear", "local"]


@pytest.mark.parametrize(
    ("strength", "stride", "feature_map", "islands", "stripes"),
    [(0.1, 4, "elu+1", True, True), (1.0, 5, "elu+1", False, False), (0.1, 1, "relu", False, False)],
)
def test_the_islands_and_stripes_are_explained_only_where_they_are(strength, stride, feature_map, islands, stripes):
    chosen = (ac.get("softmax"), ac.get("linear", feature_map=feature_map), ac.get("atrous", stride=stride))
    text = " ".join(each.value for each in open_picture(grid=48, strength=strength, variants=chosen).markdown)
    assert ("islands" in text, "stripes" in text) == (islands, stripes)


@pytest.mark.parametrize(("variant", "explained"), [("topk", True), ("local", False)])
def test_the_cost_of_top_k_is_explained_below_the_chart(variant, explained):
    at = open_picture(p_below="budget", variants=(ac.get("softmax"), ac.get(variant)))
    assert any(budget_words.top_k_cost() in each.value for each in at.caption) == explained


def test_the_open_settings_of_a_variant_that_cannot_be_causal_do_not_say_that_it_is_left_out():
    at = open_picture(causal=True, variants=(ac.get("softmax"), ac.get("nystrom")))
    assert not at.info
    at.button(key="variants.remove.nystrom").click().run()
    assert list(sent(at)[1])[2:] == ["softmax"]


def test_every_variant_with_a_pattern_of_rows_and_columns_is_shown_with_it():
    chosen = (*map(ac.get, ("softmax", "atrous", "sparse", "vertical_slash")), ac.get("longformer", dilation=2))
    at = open_picture(p_squares=True, variants=chosen)
    titles = [header["title"] for header, _ in sent(at)[1].values()][2:]
    assert sorted(titles) == [
        *("Atrous 1-D", "Atrous 3 × 3"),
        *("Longformer 1-D", "Longformer 5 × 5"),
        "Softmax",
        *("Sparse 1-D", "Sparse 3 × 3"),
        "Vertical and slash",
    ]
    at = open_picture(p_squares=True, variants=(ac.get("softmax"), ac.get("sparse", pattern="fixed")))
    assert [header["title"] for header, _ in sent(at)[1].values()][2:] == ["Softmax", "Sparse"]


def test_an_image_without_noise_is_shown():
    at = open_picture(noise=0.0)
    assert any("no noise" in each.value for each in at.markdown)
    assert set(sent(at)[1]) == {"original", "softmax", "local"}


def test_a_pixel_in_the_link_is_shown_and_one_outside_the_image_is_refused():
    at = visit("picture", {"grid": "16", "p_pixel": "17", "variants": ["softmax"]})
    assert at.session_state["p_pixel"] == 17
    at = visit("picture", {"grid": "16", "p_pixel": "256", "variants": ["softmax"]})
    assert at.session_state["p_pixel"] is None
    assert "p_pixel" in at.warning[0].value


def test_the_chart_has_a_line_over_the_cost_of_each_variant_and_levels_for_simpler_methods():
    at = open_picture(p_below="budget")
    [chart] = charts(at)
    lines = {trace["name"]: list(numbers(trace["y"])) for trace in chart["data"] if trace.get("name")}
    softmax = denoise(SMALL.load(), SMALL.clean(), PAIR[0]).psnr
    assert lines["Softmax"] == pytest.approx([softmax])
    costs = {trace["name"]: list(numbers(trace["x"])) for trace in chart["data"] if trace.get("name")}
    assert costs["Softmax"] == pytest.approx([100])
    qkv = SMALL.whole()
    local, full = (
        ac.from_word(word).cost(qkv.n, qkv.q.shape[-1]).multiply_adds for word in ("local~window~1", "softmax")
    )
    assert costs["Local"][0] == pytest.approx(100 * local / full)
    assert lines["Local"][-1] == pytest.approx(softmax)  # the window contains the whole image
    levels = ("noisy image", "blur with 3 × 3 pixels")
    styles = {trace["name"]: trace["line"]["dash"] for trace in chart["data"] if trace.get("name") in levels}
    assert (len(styles), len(set(styles.values()))) == (2, 2), "a phone's legend can tell the levels apart"


def test_the_line_of_a_square_window_has_its_sizes_in_the_tooltips():
    [chart] = charts(open_picture(p_below="budget", p_squares=True))
    lines = {trace["name"]: trace for trace in chart["data"] if trace.get("name")}
    assert lines["Local 2-D"]["customdata"][0].startswith("window 3 × 3 · ")
    assert lines["Local 1-D"]["customdata"][0].startswith("window 1 · ")


@pytest.mark.parametrize(("strength", "found"), [(0.1, True), (1.0, False)])
def test_the_sentence_above_the_chart_needs_an_image_that_softmax_improves(strength, found):
    at = open_picture(p_below="budget", strength=strength)
    assert any("softmax's PSNR" in each.value for each in at.markdown) == found


@pytest.mark.parametrize("found", [True, False])
def test_a_star_marks_the_setting_that_the_sentence_above_the_chart_names(found, monkeypatch):
    monkeypatch.setattr(budget_words, "cheapest_setting", lambda settings, softmax: list(settings)[1] if found else "")
    at = open_picture(p_below="budget")
    [chart] = charts(at)
    [local] = [trace for trace in chart["data"] if trace.get("name") == "Local"]
    symbols = local["marker"]["symbol"]
    assert ([each == "star" for each in symbols][:3] == [False, True, False]) == found
    assert [text for text in local.get("text", ()) if text] == ["window 2"] * found
    assert re.fullmatch(r"window 2 · [\d.]+ dB · cost [\d.]+%", local["customdata"][1])
    assert any("The star is" in each.value for each in at.caption) == found


def test_the_table_has_the_numbers_of_the_board():
    at = open_picture(p_below="numbers")
    found = table(at)
    expected = denoise(SMALL.load(), SMALL.clean(), PAIR[1])
    assert list(found.index) == ["Noisy", "Mean of all pixels", "Blur with 3 × 3 pixels", "Softmax", "Local"]
    assert list(found["cost"])[:4] == ["–", "–", "–", "100%"]
    assert found.loc["Local", "PSNR (dB)"] == pytest.approx(expected.psnr, abs=1e-3)
    assert found.loc["Local", "SSIM"] == pytest.approx(expected.ssim, abs=1e-3)


def test_an_image_without_noise_has_no_chart():
    at = open_picture(p_below="budget", noise=0.0)
    assert not charts(at)
    assert "This chart needs an image with noise." in [each.value for each in at.markdown]


def test_an_uploaded_photo_is_requested_and_shown():
    at = open_picture(photo="own")
    assert any("Upload a PNG or JPEG" in each.value for each in at.info)
    photo = ImageSource.of("me.png", file_of(Image.new("RGB", (40, 20), (200, 100, 50))))
    at = open_picture(photo="own", **{PHOTO: photo})
    assert "(40 × 20 pixels)" in " ".join(each.value for each in at.caption)
    assert sent(at)[0]["side"] == 16


def test_an_invalid_photo_is_reported():
    at = open_picture(photo="own", **{PHOTO: ImageSource.of("<b>.png", b"nothing")})
    assert "is not a PNG or JPEG image" in at.error[0].value


def test_the_input_of_other_pages_is_unchanged():
    at = visit("picture", {"input": "synthetic", "grid": "16", "variants": ["softmax"]})
    assert at.session_state["input"] == "synthetic"
    at = visit("matrices", {"input": "image", "grid": "16", "variants": ["softmax", "local"]})
    assert not at.error
