"""The view of the Picture page that draws the quality (PSNR) of the denoised image over the cost of each variant."""

import math
from dataclasses import replace

import streamlit as st

import attention_core as ac
from app.figures.lines.curve import Curve, guide
from app.figures.lines.curves import curves
from app.jobs import cached
from app.state.session import REFERENCE
from app.ui import chart, palette
from app.words.i18n import _, paragraph
from app.words.labels import axis_title, in_words, setting_name
from attention_core.experiments.denoising import budgets, image_columns
from attention_core.formatting import percent
from pages.picture import budget_words
from pages.picture.photo import Images
from pages.picture.subject import cost_share, name, square_sizes
from pages.picture.words import improves

HEIGHT = 400
MAX_COST = 110.0
"""Largest cost in per cent of softmax's that is shown at first."""


def settings(images: Images) -> dict[ac.Attention, tuple[float, float]]:
    """Return the PSNR and the relative cost of each budget of the variants but softmax."""
    source = images.source
    qkv = cached.record(source, source.size**2)
    return {
        each: (cached.denoised(source, each).psnr, cost_share(each, qkv))
        for attention in images.variants
        if attention.key != REFERENCE
        for each in budgets(attention, source.size**2)
    }


def show(images: Images) -> None:
    """Draw the PSNR over the cost: lines of variants with a budget, points of others, levels of simpler methods."""
    if math.isinf(images.noisy.psnr):
        st.markdown(_("This chart needs an image with noise."))
        return
    measured = {sentence_name(each): values for each, values in settings(images).items()}
    softmax = images.softmax.psnr
    best = ""
    if improves(softmax, images.noisy.psnr):
        best = budget_words.cheapest_setting(measured, softmax)
        st.markdown(budget_words.budget_finding(measured, softmax, images.noisy.psnr))
    lines = [_line(images, attention, best) for attention in images.variants]
    costs = [x for line in lines for x in line.x]
    x_range = (min(costs), min(MAX_COST, max(costs)))
    for level, psnr, dash in (
        (_("noisy image"), images.noisy.psnr, "dot"),
        (_("blur with 3 × 3 pixels"), images.blur.psnr, "dash"),
    ):
        line = guide(level, x_range, (psnr, psnr))
        lines.append(replace(line, dash=dash, name_at_end=False, texts=[level, ""], text_position="top right"))
    figure = curves(
        lines,
        x_title=axis_title(_("← cheaper · cost (% of softmax's)"), log=True),
        y_title=_("PSNR in dB, higher is better"),
        height=HEIGHT,
        log_x=True,
        right=min(MAX_COST, max(costs)),
    )
    chart.show(
        figure, key="picture.budget", name="picture-budget", alt=_("PSNR of the image against the cost of each variant")
    )
    st.caption(
        paragraph(
            _("Each point is one setting of a variant."),
            _("The star is the cheapest setting that reaches softmax's PSNR.") if best else "",
            budget_words.top_k_cost() if any(each.key == "topk" for each in images.variants) else "",
        )
    )


def sentence_name(attention: ac.Attention) -> str:
    """Return the name of a variant with its budget, in words; for a square window, the name already has the size."""
    setting = "" if image_columns(attention) else _setting(attention)
    return in_words(f"{name(attention)} · {setting}") if setting else name(attention)


def _line(images: Images, attention: ac.Attention, best: str) -> Curve:
    """Return the curve of a variant, with a star at the setting whose name is ``best``."""
    qkv = cached.record(images.source, images.source.size**2)
    attentions = list(budgets(attention, images.source.size**2))
    names, texts = [sentence_name(each) for each in attentions], [_setting(each) for each in attentions]
    costs = [cost_share(each, qkv) for each in attentions]
    psnrs = [cached.denoised(images.source, each).psnr for each in attentions]
    notes = (
        (setting, _("{value:.1f} dB", value=psnr), _("cost {share}", share=percent(cost)))
        for setting, psnr, cost in zip(texts, psnrs, costs, strict=True)
    )
    star = names.index(best) if best in names else None
    is_square = bool(image_columns(attention))
    # Along the line, the size of the square changes, so its name has no size.
    title = _("{name} 2-D", name=_(attention.title)) if is_square else name(attention)
    return Curve(
        title,
        [100 * cost for cost in costs],
        psnrs,
        colour=palette.index(attention.key),
        notes=[" · ".join(filter(None, note)) for note in notes],
        texts=[setting if i == star else "" for i, setting in enumerate(texts)],
        dash="dash" if is_square else "solid",
        hollow=is_square,
        symbol="circle" if len(attentions) == 1 else "",
        ring_index=0 if attention.key == REFERENCE else None,
        star_index=star,
    )


def _setting(attention: ac.Attention) -> str:
    """Return the budget of a variant as a text; empty without a budget."""
    if (budget := attention.variant.budget) is None:
        return ""
    text = f"{setting_name(budget.name)} {getattr(attention.params, budget.name):g}"
    return square_sizes(attention).get(budget.name, text)
