"""The comparison on the Picture page: one noisy image and what each chosen variant makes of it, on one board."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st

import attention_core as ac
from app.jobs import cached, dispatch
from app.picture_board import Tile, picture_board
from app.state.session import SharedOptions
from app.ui import variant_picker
from app.ui.input_forms import forms
from app.ui.input_panel import NoInputError
from app.words.i18n import _, escape_markdown, sentence
from attention_core.analysis.denoised_image import Denoised, cell_side, judge, mean_image
from attention_core.experiments.denoising import with_square_window
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
        variants: the image that each variant returns.
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
        found = {each: cached.denoised(source, each) for each in _shown(source.size)}
    return Found(source, found, judge(noisy, clean, mean), judge(mean, clean, mean), clean.float().numpy())


def _shown(columns: int) -> list[ac.Attention]:
    """Return the chosen variants, local attention followed by its form with a square window if this is switched on."""
    found: list[ac.Attention] = []
    for attention in SharedOptions.variants.value:
        found.append(attention)
        if PictureOptions.squares.value and attention.key == "local" and not attention.params.columns:
            found.append(with_square_window(attention, columns))
    return found


def name(attention: ac.Attention) -> str:
    """Return the name of a variant, with the size of a square window."""
    columns, window = (getattr(attention.params, setting, 0) for setting in ("columns", "window"))
    if not columns:
        return _(attention.title)
    side = min(2 * window + 1, columns)
    return _("{name} {side} × {side}", name=_(attention.title), side=side)


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
            error=found.noisy.error,
        ),
    ]
    tiles += [_tile(found.source, attention, found.noisy.psnr) for attention in found.variants]
    picture_board(
        tiles,
        key="picture.board",
        cell=cell_side(size),
        pinned=PictureOptions.pixel.value,
        full_error=FULL_ERROR,
        on_pin=_pin,
        on_turn=_turn,
        # Every session keeps this callback while the page is open, so it refers to the settings, not to the images.
        redraw=partial(_redraw, found.source, found.noisy.psnr),
    )
    st.caption(words.units())


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
        details=_details(image),
        tone="better" if image.psnr > noisy else "worse",
        image=image.image,
        error=image.error,
        maps=cached.attention_maps(source, attention),
        knob=None if is_twin else variant_picker.board_knob(attention, source.size**2),
    )


def _decibel(value: float) -> str:
    return _("{value:.1f} dB", value=value)


def _details(image: Denoised) -> str:
    return _("PSNR {psnr:.2f} dB, SSIM {ssim:.3f}", psnr=image.psnr, ssim=image.ssim)
