"""Measures how well each variant denoises an image whose pixels are tokens.

Each variant is measured at one choice of settings, or at several values of its budget, the setting that trades cost for
accuracy.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch.nn.functional import elu

from attention_core import registry
from attention_core.analysis.denoised_image import denoise, mean_image
from attention_core.attention import Attention
from attention_core.errors import InputError
from attention_core.inputs.image_source import ImageSource
from attention_core.inputs.record import QKV
from attention_core.metrics.image_quality import psnr
from attention_core.variant import Value

BUDGET_STEPS = 8
"""Maximum number of measured values of a budget."""
MIN_PATCH_SHARE = 0.1
"""Part of a query's weights below which they hardly depend on the query's patch."""
WITH_COLUMNS = ("local", "atrous", "sparse", "longformer")
"""Keys of the variants with a setting for the number of columns of an image."""


@dataclass(frozen=True, kw_only=True)
class DenoisingTask:
    """A task that denoises one image with one variant.

    Attributes:
        source: the image.
    """

    source: ImageSource
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DenoisingRow:
    """How close a variant's output is to the image without noise.

    Attributes:
        psnr: peak signal-to-noise ratio of the output in dB.
        ssim: structural similarity of the output.
        psnr_noisy: peak signal-to-noise ratio of the noisy image.
        psnr_mean: peak signal-to-noise ratio if every pixel is replaced by the mean of all pixels.
        seconds: seconds that the variant took.
    """

    variant: str
    psnr: float
    ssim: float
    psnr_noisy: float
    psnr_mean: float
    seconds: float


def run(task: DenoisingTask) -> tuple[DenoisingRow, ...]:
    """Denoise the image of a task.

    Raises:
        LabError: if the image cannot be read, or the variant does not exist.
    """
    attention = registry.from_word(task.word)
    qkv, clean = task.source.whole(), task.source.clean()
    noisy = qkv.v[0].reshape(clean.shape)
    result = denoise(qkv, clean, attention)
    row = DenoisingRow(
        variant=attention.word,
        psnr=result.psnr,
        ssim=result.ssim,
        psnr_noisy=psnr(noisy, clean),
        psnr_mean=psnr(mean_image(noisy), clean),
        seconds=result.seconds,
    )
    return (row,)


def dark_share(qkv: QKV) -> float:
    """Return the share of an image's queries whose weights hardly depend on their patch with the features elu + 1.

    These queries are dark: all numbers of their patches are far below the mean, so that elu + 1 is almost 0.
    """
    queries, keys = elu(qkv.q[0]) + 1, (elu(qkv.k[0]) + 1).sum(0)
    # The last number of a query is a constant; the others are those of its patch.
    of_patch = queries[:, :-1] @ keys[:-1] / (queries @ keys)
    return (of_patch < MIN_PATCH_SHARE).float().mean().item()


def tasks(source: ImageSource, words: Sequence[str]) -> list[DenoisingTask]:
    """Return one task per variant.

    Raises:
        LabError: if a variant does not exist, or ``words`` is empty.
    """
    if not words:
        raise InputError("Choose at least one variant.")
    return [DenoisingTask(source=source, word=registry.from_word(word).word) for word in words]


def image_columns(attention: Attention) -> int:
    """Return a variant's setting for the number of columns of the image; 0 if its pattern ignores rows and columns."""
    p = attention.params
    if attention.key not in WITH_COLUMNS or getattr(p, "pattern", "") == "fixed":
        return 0
    return p.columns  # type: ignore[attr-defined]


def square_form(attention: Attention, columns: int) -> Attention | None:
    """Return the form of a variant that uses the rows and columns of the image, not only the order of the pixels.

    A window becomes a square. It has at most as many pixels as the window, but at least 3 x 3. A stride becomes a
    stride s in both directions, which selects one pixel in s², at most as many as before.

    Args:
        attention: the variant.
        columns: number of columns of the image.

    Returns:
        The variant with a new window or stride and the number of columns; None if it has no such form, or already uses
        the columns.
    """
    p, settings = attention.params, {"columns": columns}
    if attention.key not in WITH_COLUMNS or image_columns(attention) or getattr(p, "pattern", "") == "fixed":
        return None
    if (window := getattr(p, "window", None)) is not None:
        settings["window"] = max(1, (math.isqrt(2 * window + 1) - 1) // 2)
    if (stride := getattr(p, "stride", None)) is not None:
        settings["stride"] = math.isqrt(stride - 1) + 1
    return attention.with_settings(**settings)


def budgets(attention: Attention, pixels: int) -> Iterator[Attention]:
    """Yield the variant at its own and up to ``BUDGET_STEPS`` other budgets, ascending.

    A variant without a budget is yielded unchanged. Whole-number budgets are spaced by a constant ratio, up to the
    number of pixels.
    """
    budget = attention.variant.budget
    if budget is None:
        yield attention
        return
    low, high = float(budget.low or 0), float(budget.high or 0)
    if budget.kind == "int":
        low, high = max(1.0, low), min(high, float(pixels))
        ratio = max(high / low, 1.0) ** (1 / (BUDGET_STEPS - 1))
        values: set[Value] = {max(1, min(int(high), round(low * ratio**i))) for i in range(BUDGET_STEPS)}
    else:
        values = {low + (high - low) * i / (BUDGET_STEPS - 1) for i in range(BUDGET_STEPS)}
    for value in sorted(values | {getattr(attention.params, budget.name)}, key=float):
        yield attention.with_settings(**{budget.name: value})
