"""The table of the Picture page, with the numbers of each variant's denoised image, and the page's downloads."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.ui import export
from app.ui.tables import table
from app.words.i18n import _
from attention_core.analysis.denoised_image import DenoisedImage
from attention_core.experiments.denoising import image_columns
from attention_core.formatting import percent
from attention_core.inputs.image_source import ImageSource
from pages.picture import words
from pages.picture.photo import Images
from pages.picture.subject import cost_share, name


def show(images: Images) -> None:
    """Draw the table of metrics."""
    qkv = cached.record(images.source, images.source.size**2)
    costs = {name(each): percent(cost_share(each, qkv)) for each in images.variants}
    rows = list(_rows(images))
    rows.insert(2, _row(_("Blur with 3 × 3 pixels"), images.blur))
    lines = [
        {_("image"): title, _("PSNR (dB)"): psnr, _("SSIM"): ssim, _("cost"): costs.get(title, "–")}
        for title, psnr, ssim, *_others in rows
    ]
    forms = dict(zip(list(lines[0])[1:3], ("%.1f", "%.2f"), strict=True))
    columns: dict[str, Any] = {title: st.column_config.NumberColumn(format=form) for title, form in forms.items()}
    columns |= {title: st.column_config.TextColumn(alignment="right") for title in list(lines[0])[3:]}
    st.dataframe(table(lines), hide_index=True, width="content", height="content", column_config=columns)
    st.caption(words.metrics())


def _header() -> tuple[str, ...]:
    return (_("image"), _("PSNR (dB)"), _("SSIM"), _("difference from the mean"), _("time (s)"))


def _rows(images: Images) -> Iterator[tuple[str, float, float, float, float]]:
    baselines = {_("Noisy"): images.noisy, _("Mean of all pixels"): images.mean}
    for title, each in (baselines | {name(attention): each for attention, each in images.variants.items()}).items():
        yield _row(title, each)


def _row(title: str, image: DenoisedImage) -> tuple[str, float, float, float, float]:
    return (
        title,
        round(image.psnr, 3),
        round(image.ssim, 4),
        round(image.distance_from_mean, 4),
        round(image.seconds, 4),
    )


def show_downloads(images: Images) -> None:
    """Draw the downloads and the code that computes the images again."""
    # The callbacks use only these parts. With ``images``, they would keep all images in memory.
    source, variants, rows, header = images.source, tuple(images.variants), list(_rows(images)), _header()
    with st.container(horizontal=True):
        export.download(_("Numbers (CSV)"), lambda: export.to_csv(header, rows), "picture.csv")
        export.download(_("Images (NPZ)"), lambda: export.to_npz(_images(source, variants)), "picture.npz")
    export.draw_snippet(
        "import attention_core as ac\n"
        "from attention_core.metrics.image_quality import psnr\n\n"
        f"source = {source.code}\n"
        "qkv, clean = source.whole(), source.clean()\n"
        + "".join(f"{_variable(a)} = {_code(a)}.attend(*qkv.tensors)[0].reshape(clean.shape)\n" for a in variants)
        + "print(psnr(softmax, clean))\n"
    )


def _variable(attention: ac.Attention) -> str:
    """Return a name for the image of a variant in code and files."""
    return f"{attention.key}_square" if image_columns(attention) else attention.key


def _code(attention: ac.Attention) -> str:
    changed = "".join(f", {name}={getattr(attention.params, name)!r}" for name in attention.params.changed())
    return f"ac.get({attention.key!r}{changed})"


def _images(source: ImageSource, variants: tuple[ac.Attention, ...]) -> dict[str, np.ndarray]:
    images = {_variable(attention): cached.denoised(source, attention).image for attention in variants}
    return images | {"original": source.clean().float().numpy(), "noisy": source.noisy().float().numpy()}
