"""Claim: on an image, a square window denoises better than a window of as many pixels along the row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core import registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.inputs.image_source import ImageSource
from attention_core.metrics.image_quality import psnr
from attention_core.variant import Paper

RADII = (1, 2, 3, 5)
"""Pixels on each side of a square window."""
ROW, SQUARE = "window along the row", "square window"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowShapeRow:
    """The quality of a noisy image after local attention with a window of one shape.

    Attributes:
        shape: ``ROW`` or ``SQUARE``.
        pixels: number of pixels in the window of a pixel that is far from the edges.
        psnr: peak signal-to-noise ratio of the image in dB.
    """

    shape: str
    pixels: int
    psnr: float


def measure(inputs: ExperimentInput) -> Iterator[WindowShapeRow]:
    """Yield the PSNR of the denoised image for windows of both shapes with equal numbers of pixels.

    Raises:
        UntestableError: if the input is not an image.
    """
    if not isinstance(source := inputs.source, ImageSource):
        raise UntestableError("The check needs an image. Choose an image.")
    qkv, clean = source.whole(), source.clean()
    for radius in RADII:
        pixels = (2 * radius + 1) ** 2
        for shape, settings in ((ROW, {"window": pixels // 2}), (SQUARE, {"window": radius, "columns": source.size})):
            image = registry.get("local", **settings).attend(*qkv.tensors)[0].reshape(clean.shape)
            yield WindowShapeRow(shape=shape, pixels=pixels, psnr=psnr(image, clean))


def numbers(rows: Sequence[WindowShapeRow]) -> Numbers:
    """Return at how many of the sizes the square is better, and the smallest and the largest gain in dB."""
    row, square = (values(rows, "psnr", shape=each) for each in (ROW, SQUARE))
    gains = [b - a for a, b in zip(row, square, strict=True)]
    return {"better": sum(gain > 0 for gain in gains), "sizes": len(gains), "least": min(gains), "most": max(gains)}


CLAIM = Claim(
    statement="On an image, local attention removes noise better with a square window than with a window of the same "
    "number of pixels along the row.",
    short="square windows denoise better than rows",
    source=Paper("Image Transformer", 2018, "https://arxiv.org/abs/1802.05751", authors="Parmar et al."),
    place=Place("picture", options={"p_squares": "1"}, variants=("softmax", "local")),
    experiment="Local attention denoises an image: each pixel attends mostly to pixels in its window whose "
    "surroundings are similar to its own. The window has 9, 25, 49 or 121 pixels, either all in the pixel's row, or "
    "in a square around the pixel. The quality is the peak signal-to-noise ratio (PSNR), which compares the denoised "
    "image with the image without noise.",
    rule="Local attention denoises an image, with a square window or with a window of as many pixels along the row. "
    "The claim holds if the square window removes more noise (higher PSNR) at all four window sizes. It partly holds "
    "if it does so at one size or more.",
    verdict=Rule(holds=Condition("better", ">=", 4), partly=Condition("better", ">=", 1)),
    finding="A square window contains more nearby pixels than a window of as many pixels along the row. The square "
    "window removes more noise (higher PSNR) at {better} of {sizes} window sizes.",
    details="The PSNR with the square window minus the PSNR with the window along the row lies between {least} dB "
    "and {most} dB.",
    quantities=(
        Quantity("better", "window sizes at which a square window removes more noise than a row", total="sizes"),
        Quantity("sizes", "number of window sizes"),
        Quantity(
            "least",
            "PSNR with the square window minus PSNR with the window along the row, smallest over window sizes",
            "dB",
        ),
        Quantity(
            "most",
            "PSNR with the square window minus PSNR with the window along the row, largest over window sizes",
            "dB",
        ),
    ),
    figure=Figure(
        x=Axis("pixels", "number of pixels in the window", log=True),
        y=Axis("psnr", "PSNR of the denoised image (dB)"),
        by="shape",
    ),
    uses_image=True,
)
