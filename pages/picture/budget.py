"""The view of the Picture page that draws the quality (PSNR) of the denoised image over the cost of each variant."""

import streamlit as st

import attention_core as ac
from app.figures.lines.curves import Curve, curves, guide
from app.jobs import cached
from app.ui import chart, palette
from app.words.i18n import _
from app.words.labels import setting_name
from attention_core.analysis.denoised_image import assess, box_blur, mean_image
from attention_core.experiments.denoising import budgets, image_columns
from pages.picture.photo import Images
from pages.picture.subject import cost_share, name

HEIGHT = 400
MAX_COST = 200.0
"""Largest cost in per cent of softmax's that is shown at first."""


def show(images: Images) -> None:
    """Draw a line over the cost for each variant with a budget, a point for each other one, and simpler methods."""
    source = images.source
    with cached.spinner(_("Computing the image for every setting …")):
        lines = [_line(images, attention) for attention in images.variants]
    costs = [x for line in lines for x in line.x]
    x_range = (min(costs), min(MAX_COST, max(costs)))
    noisy, clean = source.noisy(), source.clean()
    blurred = assess(box_blur(noisy), clean, mean_image(noisy)).psnr
    for level, psnr in (
        (_("noisy image"), images.noisy.psnr),
        (_("blur with 3 × 3 pixels"), blurred),
        (_("mean of all pixels"), images.mean.psnr),
    ):
        lines.append(guide(level, x_range, (psnr, psnr)))
    figure = curves(
        lines,
        x_title=_("cost relative to softmax (%)"),
        y_title=_("PSNR in dB"),
        height=HEIGHT,
        log_x=True,
        right=min(MAX_COST, max(costs)),
    )
    chart.show(
        figure, key="picture.budget", name="picture-budget", alt=_("PSNR of the image against the cost of each variant")
    )
    st.caption(
        _(
            "Images at higher points are closer to the image without noise, and points further left are cheaper. "
            "Along a line, one setting of the variant changes, such as its window. Costs are computed for values with "
            "as many components as keys."
        )
    )


def _line(images: Images, attention: ac.Attention) -> Curve:
    qkv = cached.record(images.source, images.source.size**2)
    attentions = list(budgets(attention, images.source.size**2))
    setting = attention.variant.budget
    return Curve(
        " · ".join([name(attention), *([setting_name(setting.name)] if setting else [])]),
        [100 * cost_share(each, qkv) for each in attentions],
        [cached.denoised(images.source, each).psnr for each in attentions],
        colour=palette.index(attention.key),
        label=name(attention),
        notes=[]
        if setting is None
        else [f"{setting_name(setting.name)} {getattr(each.params, setting.name):g}" for each in attentions],
        dash="dash" if image_columns(attention) else "solid",
    )
