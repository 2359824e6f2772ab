"""Tests of denoising: uniform attention returns the mean image, and the maps are sums of the variant's weights."""

import numpy as np
import pytest
import torch

import attention_core as ac
from attention_core import registry
from attention_core.analysis.denoised_image import attention_maps, box_blur, cell_side, denoise, mean_image
from attention_core.experiments import denoising
from attention_core.inputs import ImageSource

SOURCE = ImageSource(size=16)
QKV, CLEAN = SOURCE.load(), SOURCE.clean()


def test_the_softmax_of_very_weak_patches_returns_the_mean_image():
    weak = ImageSource(size=16, strength=10.0)
    found = denoise(weak.load(), CLEAN, ac.get("softmax"))
    assert found.distance_from_mean < 0.001
    mean = mean_image(weak.noisy())
    np.testing.assert_allclose(found.image, mean.numpy(), atol=0.005)


def test_softmax_improves_the_image_and_linear_attention_returns_about_its_mean():
    rows = {word: denoising.run(task)[0] for word in ("softmax", "linear") for task in denoising.tasks(SOURCE, [word])}
    assert rows["softmax"].psnr > rows["softmax"].psnr_noisy > rows["linear"].psnr
    assert (
        denoise(QKV, CLEAN, ac.get("linear")).distance_from_mean
        < 0.05
        < denoise(QKV, CLEAN, ac.get("softmax")).distance_from_mean
    )
    assert rows["softmax"].ssim > rows["linear"].ssim


def test_the_error_is_the_mean_absolute_difference_over_the_channels():
    found = denoise(QKV, CLEAN, ac.get("local"))
    np.testing.assert_allclose(found.error, np.abs(found.image - CLEAN.numpy()).mean(-1), atol=1e-6)


def test_a_blurred_pixel_is_the_mean_of_nine_pixels():
    noisy = SOURCE.noisy()
    assert box_blur(noisy)[5, 7, 1].item() == pytest.approx(noisy[4:7, 6:9, 1].mean().item())


@pytest.mark.parametrize(("side", "cell"), [(16, 1), (32, 1), (40, 2), (48, 2), (64, 2)])
def test_cells_are_as_small_as_the_limit_allows(side, cell):
    assert cell_side(side) == cell


WITH_MASK = [variant.key for variant in ac.all_variants() if variant.mask is not None]


@pytest.mark.parametrize(
    ("size", "key"), [(16, "softmax"), (48, "local"), (16, "differential"), *((16, key) for key in WITH_MASK)]
)
def test_a_map_sums_the_weights_of_one_pixel_in_each_cell(size, key):
    qkv, attention = ImageSource(size=size).whole(), ac.get(key)
    maps, cell = attention_maps(qkv, attention), cell_side(size)
    cells, weights = size // cell, attention.weights(qkv.q, qkv.k)[0]
    for row, column in ((0, 0), (3, 5)):
        at = row * cells + column
        pixel = weights[row * cell * size + column * cell].reshape(size, size)
        wanted = torch.stack([part.sum() for band in pixel.split(cell) for part in band.split(cell, 1)])
        found = maps.levels[at].astype(float) / 127 * maps.peaks[at]
        np.testing.assert_allclose(found, wanted.numpy(), atol=maps.peaks[at] / 127)
    rows = [weights[row * cell * size + column * cell] for row in range(cells) for column in range(cells)]
    assert maps.largest == pytest.approx(sorted(size**2 * row.max().item() for row in rows)[(len(rows) - 1) // 2])


@pytest.mark.parametrize(
    ("word", "square"),
    [
        ("local", "local~window~2~columns~36"),  # 25 pixels in place of 33
        ("local~window~4", "local~window~1~columns~36"),  # 9 and 9
        ("local~window~1", "local~window~1~columns~36"),
        ("atrous", "atrous~stride~3~columns~36"),  # one pixel in 9 in place of 8
        ("atrous~stride~9", "atrous~stride~3~columns~36"),
        ("atrous~stride~1", "atrous~stride~1~columns~36"),
        ("sparse", "sparse~window~1~stride~3~columns~36"),
        ("longformer~dilation~2", "longformer~window~1~dilation~2~columns~36"),
    ],
)
def test_a_square_form_selects_at_most_as_many_pixels(word, square):
    attention, wanted = registry.from_word(word), registry.from_word(square)
    found = denoising.square_form(attention, 36)
    assert found == wanted
    assert denoising.image_columns(found) == 36
    assert denoising.image_columns(attention) == 0
    most = max(9, attention.mask(36**2).sum(-1).max().item()) + getattr(attention.params, "global_tokens", 0)
    assert found.mask(36**2).sum(-1)[1:].max().item() <= most


@pytest.mark.parametrize("word", ["softmax", "vertical_slash", "sparse~pattern~fixed", "local~columns~16"])
def test_other_variants_have_no_further_square_form(word):
    assert denoising.square_form(registry.from_word(word), 36) is None


def test_budgets_include_the_current_setting_of_the_variant():
    words = [each.word for each in denoising.budgets(ac.get("local", window=5), 256)]
    assert "local~window~5" in words
    assert len(words) in (8, 9)
    assert [each.word for each in denoising.budgets(ac.get("linear"), 256)] == ["linear"]
    steps = [each.params.window for each in denoising.budgets(ac.get("local"), 256)]
    assert steps == sorted(steps)
    assert steps[-1] == 256


def test_an_image_without_variants_is_refused():
    with pytest.raises(ac.errors.InputError, match="at least one variant"):
        denoising.tasks(SOURCE, [])
