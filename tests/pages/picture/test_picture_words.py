"""Tests of the sentences of the Picture page on each side of each branch."""

import math
import re

import numpy as np
import pytest

from app.words.finding import text_above, text_below
from app.words.i18n import paragraph
from attention_core.analysis.denoised_image import DenoisedImage
from pages.picture import budget_words, digit_words, words


def image(psnr, from_mean=0.2):
    pixels = np.zeros((16, 16, 1), np.float32)
    return DenoisedImage(
        image=pixels, error=pixels[..., 0], psnr=psnr, ssim=0.5, distance_from_mean=from_mean, seconds=0.1
    )


def headline(found, noisy, softmax, causes=None, costs=None, **more):
    """Return the findings with their explanations; by default, each variant but softmax costs a tenth of it or more."""
    costs = costs or {name: 0.1 + 0.02 * i for i, name in enumerate(name for name in found if name != "Softmax")}
    lines = words.findings(found, noisy, softmax, costs, causes, **more)
    return paragraph(text_above(lines).replace("  \n", " "), text_below(lines))


SOFTMAX = "**At these settings, Softmax's image is closest to the original (25.2 dB).**"
WITH_PSNR = "**Softmax removes noise (PSNR 20.0 → 25.2 dB).**"


def test_the_variants_are_named_with_their_costs_and_causes():
    found = {"Softmax": image(25.21), "Local": image(24.1), "Performer": image(12.0), "Linear": image(10.8, 0.01)}
    both = found | {"Performer": image(12.0, 0.01)}
    linear = words.even_weights({"Linear": 1.12}, 84.25)
    performer = words.few_features("Performer", 1.04, 64)
    assert linear == (
        "With **Linear**, every query weights all pixels almost equally: the median of the largest weight is 1.1 "
        "times the average weight (softmax: 84 times)."
    )
    assert words.even_weights({"Linear": 1.0, "Softmax": 1.1}, 1.1) == (
        "With **Linear** and **Softmax**, every query weights all pixels almost equally: the median of the "
        "largest weight is 1.1 times the average weight."
    )
    assert headline(found, 20.0, 25.21, {"Linear": linear}) == (
        f"{SOFTMAX} **Linear returns an almost uniform image.** {linear}"
    )
    assert headline(both, 20.0, 25.21, {"Linear": linear, "Performer": linear}).endswith(f"uniform images.** {linear}")
    assert headline(both, 20.0, 25.21, {"Performer": performer, "Linear": linear}) == (
        f"{SOFTMAX} **Performer and Linear return almost uniform images.** {performer} {linear}"
    )


@pytest.mark.parametrize(
    ("effective", "features", "reason"),
    [(1.0, 1, "has only 1 random feature"), (1.49, 64, "mostly uses one of its 64 random features"), (1.51, 64, None)],
)
def test_the_reason_why_performer_returns_the_mean_is_given(effective, features, reason):
    text = f"**Performer** {reason}, so all queries have almost the same weights." if reason else ""
    assert words.few_features("Performer", effective, features) == text


@pytest.mark.parametrize(("share", "visible"), [(0.0, False), (0.01, True), (0.49, True), (0.5, False)])
def test_islands_need_enough_pixels_and_must_be_the_minority(share, visible):
    assert words.are_islands(share) == visible


@pytest.mark.parametrize(
    ("psnr", "text"),
    [
        (25.16, "No other setting tried comes closer."),
        (25.34, "**Another setting comes closer: Top-k with k = 252 (25.3 dB).**"),
    ],
)
def test_a_setting_that_is_not_shown_is_named_only_if_it_comes_closer(psnr, text):
    other = budget_words.other_setting("Top-k with k = 252", psnr, 25.21)
    assert other == text
    assert headline({"Softmax": image(25.21)}, 20.0, 25.21, other=other) == f"{WITH_PSNR} {text}"
    assert text not in headline({"Softmax": image(25.21)}, math.inf, 25.21, other=other)


@pytest.mark.parametrize(("psnr", "is_better"), [(25.24, False), (25.26, True)])
def test_top_k_shows_that_small_weights_make_the_image_worse(psnr, is_better):
    assert bool(budget_words.without_small_weights(psnr, 25.21)) == is_better


@pytest.mark.parametrize(
    ("softmax", "text"),
    [
        (25.2, WITH_PSNR),
        (20.0, "**No variant improves the image:** no PSNR is higher than the 20.0 dB of the noisy image."),
        (19.0, "**No variant improves the image:** no PSNR is higher than the 20.0 dB of the noisy image."),
    ],
)
def test_the_headline_of_one_variant_compares_it_with_softmax(softmax, text):
    assert headline({"Softmax": image(softmax)}, 20.0, softmax) == text


def test_only_softmax_improves_the_image():
    assert headline({"Softmax": image(25.2), "Performer": image(12.0)}, 20.0, 25.2) == (
        f"{WITH_PSNR} **At these settings, only softmax brings the image closer to the original.**"
    )


@pytest.mark.parametrize(
    ("psnr", "softmax", "expected"),
    [
        (25.3, 25.2, SOFTMAX.replace("Softmax", "A").replace("25.2", "25.3")),
        (25.16, 25.2, "**At these settings, the images of Softmax and A are closest to the original (25.2 dB).**"),
        (25.1, 25.2, SOFTMAX),
        (21.0, 19.0, "**Softmax does not improve the image:** its PSNR is 19.0 dB, compared with 20.0 dB for "
        "the noisy image. **A reaches 21.0 dB at 12% of softmax's cost.**"),
    ],
)  # fmt: skip
def test_the_best_other_variant_is_compared_with_softmax(psnr, softmax, expected):
    found = {"Softmax": image(softmax), "B": image(20.5), "A": image(psnr)}
    assert headline(found, 20.0, softmax) == expected


@pytest.mark.parametrize(
    ("noisy", "first"),
    [
        (60.0, "**No variant improves the image:** no PSNR is higher than the 60.0 dB of the noisy image."),
        (math.inf, "**The image has no noise, so no variant can improve it.**"),
    ],
)
def test_an_image_with_little_or_no_noise_is_not_improved(noisy, first):
    assert headline({"Softmax": image(25.2)}, noisy, 25.2) == first


@pytest.mark.parametrize(("from_mean", "is_grey"), [(0.0999, True), (0.1, False)])
def test_an_image_close_to_the_mean_counts_as_the_mean(from_mean, is_grey):
    text = headline({"Linear": image(10.8, from_mean)}, 9.0, 8.0)
    assert ("**Linear returns an almost uniform image.**" in text) == is_grey
    assert ("**Linear reaches 10.8 dB at 10% of softmax's cost.**" in text) != is_grey, "a grey image is no success"


@pytest.mark.parametrize(("weight", "share"), [(0.899, None), (0.9, "90%"), (1.0, "100%")])
@pytest.mark.parametrize(
    ("softmax", "noisy", "fails"), [(10.5, 10.5, True), (25.2, 20.0, False), (25.2, math.inf, False)]
)
def test_a_small_filter_strength_is_the_reason_why_softmax_removes_no_noise(weight, share, softmax, noisy, fails):
    why = words.small_strength(0.1, weight)
    assert why == (
        f"With softmax and h = 0.1, a pixel typically gives {share} of its weight to itself, so the image hardly "
        "changes. With a larger filter strength h, softmax averages more pixels."
        if share
        else ""
    )
    text = headline({"Softmax": image(softmax)}, noisy, softmax, failure=why)
    assert ("gives" in text) == (fails and bool(share))


def test_the_reason_why_variants_return_the_mean_is_given_if_none_improves_the_image():
    why = words.even_weights({"Linear": 1.12}, 84.25)
    text = headline({"Linear": image(10.8, 0.01)}, 20.0, 10.8, {"Linear": why})
    assert text.startswith("**No variant improves the image:** no PSNR is higher than the 20.0 dB of the noisy image.")
    assert text.endswith(f" {why}")


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        ({}, "**Only softmax is shown.** Add a variant to see where its attention differs from softmax's."),
        (
            {"Local": 0.123},
            "**Local differs from softmax by 12%** of softmax's output (output error). Equal weights on all pixels "
            "would have an output error of 325%.",
        ),
        (
            {"Local": 1.2, "Top-k": 0.05, "Linear": 3.04},
            "**Top-k is closest to softmax** (5% output error), and Linear is farthest (304%). Equal weights on all "
            "pixels would have an output error of 325%.",
        ),
    ],
)
def test_the_variants_closest_to_softmax_and_farthest_from_it_on_a_digit(errors, text):
    lines = digit_words.error_ranking(errors, 3.25, dict.fromkeys(errors, 0.1))
    assert paragraph(text_above(lines), text_below(lines)) == text


def test_the_closest_cheaper_variant_on_a_digit_is_named_if_the_closest_one_is_not_cheaper():
    errors, costs = {"Top-k": 0.05, "Local": 0.2, "Linear": 0.9}, {"Top-k": 1.0, "Local": 0.4, "Linear": 0.1}
    assert text_above(digit_words.error_ranking(errors, 3.25, costs)).endswith(
        "Among the variants that cost less than softmax, Local is closest, with 20% output error at 40% of softmax's "
        "cost."
    )
    only = text_above(digit_words.error_ranking(errors, 3.25, {**costs, "Linear": 1.1}))
    assert only.endswith("Only Local costs less than softmax: 40% of its cost, with 20% output error.")
    unranked = text_above(digit_words.error_ranking(errors, 3.25, {**costs, "Linear": 1.1, "Reformer": 0.5}))
    assert "Among the variants that cost less than softmax, Local is closest" in unranked
    assert "cost less" not in text_above(digit_words.error_ranking(errors, 3.25, dict.fromkeys(errors, 1.2)))


@pytest.mark.parametrize("averaged", [False, True])
def test_the_heads_that_the_maps_of_a_digit_average_are_mentioned(averaged):
    assert ("the average of all heads" in digit_words.digit_units(averaged=averaged)) == averaged


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({}, ""),
        (
            {"A": (25.14, 0.1), "B": (24.0, 0.01), "C": (26.0, 1.0)},
            "**No cheaper setting tried reaches softmax's PSNR.** A comes closest, with 25.1 dB at 10% of softmax's "
            "cost.",
        ),
        ({"C": (26.0, 1.0)}, ""),
        ({"A": (25.16, 0.3), "B": (25.24, 0.999)}, "**A reaches softmax's PSNR at 30% of its cost.**"),
        ({"A": (25.16, 0.3), "B": (25.2, 0.2)}, "**B reaches softmax's PSNR at 20% of its cost.**"),
    ],
)
def test_the_cheapest_setting_with_softmaxs_quality_or_the_closest_one_is_named(settings, finding):
    assert budget_words.budget_finding(settings, 25.21, 20.0) == finding
    assert budget_words.cheapest_setting(settings, 25.21) == "".join(re.findall(r"\*\*(.) reaches", finding))


@pytest.mark.parametrize(("psnr", "improves"), [(20.04, False), (20.06, True)])
def test_the_closest_cheaper_setting_is_named_only_if_it_improves_the_image(psnr, improves):
    text = budget_words.budget_finding({"A": (psnr, 0.1), "B": (11.2, 0.01)}, 25.21, 20.0)
    worse = f"**No cheaper setting tried improves the image (at most {psnr:.1f} dB).**"
    assert text == worse if not improves else "A comes closest" in text
