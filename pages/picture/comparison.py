"""The comparison on the Picture page: one noisy image and what each chosen variant makes of it, on one board."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st

import attention_core as ac
from app.jobs import cached, dispatch
from app.picture_board import Tile, picture_board
from app.state.session import REFERENCE, SharedOptions
from app.ui import variant_picker
from app.ui.input_forms import forms
from app.ui.input_panel import NoInputError
from app.words.i18n import _, enumeration, escape_markdown, sentence
from app.words.labels import readable
from attention_core.analysis.denoised_image import Denoised, cell_side, judge, mean_image
from attention_core.experiments.denoising import columns_of, square_form
from attention_core.inputs.positions import OWN
from attention_core.inputs.source import ImageSource
from pages.picture import words
from pages.picture.options import PictureOptions

FULL_ERROR = 0.3
"""Mean absolute error that is drawn in the darkest colour of an error map; white is 1."""


@dataclass(frozen=True, eq=False)
class Found:
    """The images on the page.

    Attributes:
        source: the noisy image.
        variants: the image that each variant returns, in the order of their PSNR, best first.
        noisy: the noisy image.
        mean: the mean image.
        clean: the image without noise.
    """

    source: ImageSource
    variants: dict[ac.Attention, Denoised]
    noisy: Denoised
    mean: Denoised
    clean: np.ndarray


def of() -> Found:
    """Compute the images of all chosen variants, or show a message on the page and end it.

    Raises:
        NoInputError: after a message.
    """
    form = forms()[ImageSource.key]
    try:
        source = form.source(SharedOptions.now())
        if not isinstance(source, ImageSource):
            st.info(form.missing, icon=":material/upload:")
            raise NoInputError
        source = replace(source, positions=OWN)
        qkv = cached.record(source, source.size**2)
    except ac.LabError as error:
        st.error(escape_markdown(sentence(error)), icon=":material/error:")
        raise NoInputError from error
    for notice in qkv.notices:
        st.caption(f":material/info: {escape_markdown(sentence(notice))}")
    clean, noisy = source.clean(), source.noisy()
    mean = mean_image(noisy)
    with cached.spinner(_("Computing the variants …")):
        images = {each: cached.denoised(source, each) for each in _shown(source.size)}
    found = dict(sorted(images.items(), key=lambda each: -each[1].psnr))
    return Found(source, found, judge(noisy, clean, mean), judge(mean, clean, mean), clean.float().numpy())


def _shown(columns: int) -> list[ac.Attention]:
    """Return the chosen variants and, if switched on, the square form of each variant that has one."""
    found: list[ac.Attention] = []
    for attention in SharedOptions.variants.value:
        found.append(attention)
        if PictureOptions.squares.value and (square := square_form(attention, columns)):
            found.append(square)
    return found


def name(attention: ac.Attention) -> str:
    """Return the name of a variant, with the size of its square window or stride if it has one."""
    sizes = _sizes(attention)
    if not sizes:
        return _(attention.title)
    return _("{name} {side} × {side}", name=_(attention.title), side=next(iter(sizes.values())))


def _sizes(attention: ac.Attention) -> dict[str, int]:
    """Return the sides of the square window and of the steps between pixels of a variant that has them, by name."""
    columns, p, found = columns_of(attention), attention.params, {}
    if columns and (window := getattr(p, "window", None)) is not None:
        found["window"] = min(2 * window * getattr(p, "dilation", 1) + 1, columns)
    if columns and (stride := getattr(p, "stride", None)) is not None:
        found["stride"] = stride
    return found


def show(found: Found) -> None:
    """Draw the board: the original, the noisy image, and the image of each variant."""
    size = found.source.size
    PictureOptions.pixel.restrict_to(range(size**2))
    tiles = [
        Tile(key="original", title=_("Original"), number="", details="", tone="", image=found.clean),
        Tile(
            key="noisy",
            title=_("Noisy"),
            number=_decibel(found.noisy.psnr),
            details=_details(found.noisy),
            tone="",
            image=found.noisy.image,
            error=found.noisy.error if found.noisy.error.any() else None,
        ),
    ]
    tiles += [_tile(found.source, attention, found.noisy.psnr) for attention in found.variants]
    picture_board(
        tiles,
        key="picture.board",
        cell=cell_side(size),
        pinned=PictureOptions.pixel.value,
        full_error=FULL_ERROR,
        file_name="picture",
        on_pin=_pin,
        on_turn=_turn,
        on_open=variant_picker.toggle_settings,
        # Every session keeps this callback while the page is open, so it refers to the settings, not to the images.
        redraw=partial(_redraw, found.source, found.noisy.psnr),
    )
    st.caption(words.units())


def reasons(found: Found) -> str:
    """Return why softmax removes noise and why other images have one colour, and what the board shows."""
    even = [
        name(each)
        for each, image in found.variants.items()
        if words.is_almost_mean(image) and words.is_even(cached.attention_maps(found.source, each).largest)
    ]
    softmax = next(image for each, image in found.variants.items() if each.key == REFERENCE)
    return words.reasons(softmax, found.noisy.psnr, even)


def explain(found: Found) -> None:
    """Write which images are square forms, and why images are grey or better with a square window."""
    chosen = SharedOptions.variants.value
    if squares := [name(each) for each in found.variants if each not in chosen]:
        st.caption(words.added(squares, len(chosen)))
    for attention, image in found.variants.items():
        if words.is_almost_mean(image):
            shares = [cached.attention_maps(found.source, each).largest for each in (attention, ac.get(REFERENCE))]
            if text := words.why_mean(name(attention), *shares, elu=attention == ac.get("linear")):
                st.markdown(text)
    for row in chosen:
        square = square_form(row, found.source.size)
        if row.key == "local" and square is not None and square in found.variants:
            far = (row.params.window, square.params.window)  # type: ignore[attr-defined]
            psnr = (found.variants[row].psnr, found.variants[square].psnr)
            if text := words.why_square(name(row), name(square), (2 * far[0] + 1, (2 * far[1] + 1) ** 2), far, psnr):
                st.markdown(text)


def _pin(pixel: int | None) -> None:
    PictureOptions.pixel.set(pixel)


def _turn(key: str, value: object, held: bool) -> None:
    variant_picker.set_budget(key, value)


def _redraw(source: ImageSource, noisy: float, key: str) -> Tile | None:
    """Return one tile drawn with its variant's current settings; None if the variant has been removed."""
    attention = next((each for each in SharedOptions.variants.value if each.key == key), None)
    if attention is None:
        return None
    with cached.page_lock().acquired(dispatch.visitor()):
        return _tile(source, attention, noisy)


def _tile(source: ImageSource, attention: ac.Attention, noisy: float) -> Tile:
    """Return the tile of a variant; ``noisy`` is the PSNR of the noisy image."""
    image = cached.denoised(source, attention)
    is_twin = attention not in SharedOptions.variants.value  # the square form of another tile has no slider
    return Tile(
        key=attention.word if is_twin else attention.key,
        title=name(attention),
        number=_decibel(image.psnr),
        psnr=image.psnr,
        details=_details(image),
        tone="better" if image.psnr > noisy else "worse",
        image=image.image,
        error=image.error,
        maps=cached.attention_maps(source, attention),
        knob=None if is_twin else variant_picker.board_knob(attention, source.size**2),
        note=enumeration(f"{readable(each)} {side} × {side}" for each, side in _sizes(attention).items()),
        about=_(attention.variant.summary),
        opens="" if is_twin else _("Settings of {name}", name=_(attention.title)),
    )


def _decibel(value: float) -> str:
    return _("{value:.1f} dB", value=value)


def _details(image: Denoised) -> str:
    return _("PSNR {psnr:.2f} dB, SSIM {ssim:.3f}", psnr=image.psnr, ssim=image.ssim)
