"""The subject of the Picture page (a photograph or a digit), and the board that shows it.

The board has one tile for each attention variant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

import attention_core as ac
from app.picture_board import Tile, picture_board
from app.state.session import REFERENCE, SharedOptions
from app.ui import variant_picker
from app.words.finding import Lines, text_below
from app.words.i18n import _
from app.words.labels import setting_name
from attention_core.analysis.denoised_image import cell_side
from attention_core.experiments.denoising import image_columns, square_form
from attention_core.formatting import percent
from attention_core.inputs import QKV
from pages.picture.options import PictureOptions

FULL_ERROR = 0.3
"""Mean absolute error that is drawn in the darkest colour of an error map; white is 1."""
TileValues = Callable[[ac.Attention], Mapping[str, Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """An image whose pixels are tokens, and what each variant makes of it.

    Attributes:
        side: side of the image in pixels.
        variants: the variants.
        tiles: the tiles before those of the variants.
        draw: returns the attributes of a variant's tile by their names in ``Tile``. It stays in the session while the
            page is open, so it contains settings instead of images.
        findings: the findings about the images.
        units: what the numbers on the board are, and how they are computed.
        legend: what the colours on the board are; may be empty.
        views: functions that draw the views below the board, by the views' names.
    """

    side: int
    variants: Sequence[ac.Attention]
    tiles: Sequence[Tile]
    draw: TileValues
    findings: Lines
    units: str
    legend: str = ""
    views: Mapping[str, Callable[[], None]]


def shown_variants(columns: int) -> list[ac.Attention]:
    """Return the chosen variants and, if switched on, the square form of each variant that has one."""
    result: list[ac.Attention] = []
    for attention in SharedOptions.variants.value:
        result.append(attention)
        if PictureOptions.squares.value and (square := square_form(attention, columns)):
            result.append(square)
    return result


def name(attention: ac.Attention) -> str:
    """Return the name of a variant, with the size of its square window or stride if it has one.

    If square forms are also shown, the name of the form along the row ends with "1-D".
    """
    sizes = _sizes(attention)
    if not sizes and PictureOptions.squares.value and square_form(attention, 1):
        return _("{name} 1-D", name=_(attention.title))
    if not sizes:
        return _(attention.title)
    return _("{name} {side} × {side}", name=_(attention.title), side=next(iter(sizes.values())))


def cost_share(attention: ac.Attention, qkv: QKV) -> float:
    """Return the multiply-adds of a variant relative to those of softmax on the same tokens."""
    variant_cost, softmax_cost = (
        each.cost(qkv.n, qkv.q.shape[-1], heads=qkv.heads).multiply_adds for each in (attention, ac.get(REFERENCE))
    )
    return variant_cost / softmax_cost


def cost_text(attention: ac.Attention, qkv: QKV) -> str:
    """Return the line about the cost of a variant below its image, and the size of its square window or stride."""
    return " · ".join((_("cost {share}", share=percent(cost_share(attention, qkv))), *square_sizes(attention).values()))


def square_sizes(attention: ac.Attention) -> dict[str, str]:
    """Return the size of a variant's square window and its stride as texts, by setting; empty without either."""
    return {name: f"{setting_name(name)} {side} × {side}" for name, side in _sizes(attention).items()}


def _sizes(attention: ac.Attention) -> dict[str, int]:
    """Return the side of a variant's square window and its stride, in pixels, by name; empty without either."""
    columns, p, sizes = image_columns(attention), attention.params, {}
    if columns and (window := getattr(p, "window", None)) is not None:
        sizes["window"] = min(2 * window * getattr(p, "dilation", 1) + 1, columns)
    if columns and (stride := getattr(p, "stride", None)) is not None:
        sizes["stride"] = stride
    return sizes


def show(subject: Subject) -> None:
    """Draw the board: the tiles of the subject itself, and the image of each variant."""
    PictureOptions.pixel.restrict_to(range(subject.side**2))
    tile = partial(_tile, subject.draw, subject.side)
    picture_board(
        [*subject.tiles, *map(tile, subject.variants)],
        key="picture.board",
        cell=cell_side(subject.side),
        pinned=PictureOptions.pixel.value,
        full_error=FULL_ERROR,
        legend=subject.legend,
        file_name="picture",
        on_pin=PictureOptions.pixel.set,
        on_turn=variant_picker.set_budget,
        on_open=variant_picker.toggle_settings,
        redraw=partial(variant_picker.redraw, tile),
    )
    st.caption(subject.units)


def explain(subject: Subject) -> None:
    """Write the explanations of the findings."""
    if text := text_below(subject.findings):
        st.markdown(text)


def _tile(draw: TileValues, side: int, attention: ac.Attention) -> Tile:
    # The square forms that ``shown_variants`` adds are not among the chosen variants.
    is_square_form = attention not in SharedOptions.variants.value
    return Tile(
        key=attention.word if is_square_form else attention.key,
        title=name(attention),
        knob=None if is_square_form else variant_picker.board_knob(attention, side**2),
        tooltip=_(attention.variant.summary),
        settings_label="" if is_square_form else _("Settings of {name}", name=_(attention.title)),
        **draw(attention),
    )
