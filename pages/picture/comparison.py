"""The Picture page for a noisy photograph, which each variant denoises: the page's tiles, findings and views."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.picture_board import Tile
from app.state.session import REFERENCE
from app.words.finding import Lines
from app.words.i18n import _, paragraph
from attention_core.analysis.denoised_image import DenoisedImage
from attention_core.experiments.denoising import dark_share, image_columns
from attention_core.experiments.performer_error import effective_features
from attention_core.inputs import QKV
from attention_core.inputs.image_source import ImageSource
from pages.picture import budget, budget_words, numbers, words
from pages.picture.photo import Images
from pages.picture.subject import Subject, cost_share, cost_text, name

FORMULA = (
    r"{y_i = \frac{\sum_j e^{-\|p_i - p_j\|^2 / h^2}\, x_j}{\sum_l e^{-\|p_i - p_l\|^2 / h^2}},} \qquad \allowbreak "
    r"{q_i = \sqrt{d} \left[\tfrac{2 p_i}{h^2},\ 1\right],\quad k_j = \left[p_j,\ -\tfrac{\|p_j\|^2}{h^2}\right]}"
)
"""Non-local means, and the queries and keys with which attention computes them. A phone shows two lines."""


def subject(images: Images) -> Subject:
    """Return the images of a photograph as the subject of the page, with views of PSNR and cost."""
    noisy = images.noisy
    tiles = [Tile(key="original", title=_("Original"), image=images.clean)]
    if math.isfinite(noisy.psnr):
        tiles.append(
            Tile(
                key="noisy",
                title=_("Noisy"),
                number=_("PSNR {value:.1f} dB", value=noisy.psnr),
                details=_details(noisy),
                image=noisy.image,
                error=noisy.error,
            )
        )
    return Subject(
        side=images.source.size,
        variants=tuple(images.variants),
        tiles=tiles,
        draw=partial(_tile_values, images.source),
        findings=_findings(images),
        units=words.units(),
        legend=words.legend(images.source.patch),
        views={
            "budget": partial(budget.show, images),
            "numbers": partial(numbers.show, images),
            "explain": partial(_explain, images),
            "download": partial(numbers.show_downloads, images),
        },
    )


def _findings(images: Images) -> Lines:
    """Return which image is closest to the original, and which images are uniform."""
    mean_like = [each for each, image in images.variants.items() if words.is_almost_mean(image)]
    titles = {name(each): image for each, image in images.variants.items()}
    qkv = cached.record(images.source, images.source.size**2)
    costs = {name(each): cost_share(each, qkv) for each in images.variants if each.key != REFERENCE}
    causes = _causes(mean_like, images.source, qkv)
    shown = max(image.psnr for image in (images.noisy, *titles.values()))
    tried = {each: psnr for each, (psnr, _cost) in budget.settings(images).items()}
    best = max(tried, key=tried.__getitem__, default=None)
    other = budget_words.other_setting(budget.sentence_name(best), tried[best], shown) if best else ""
    self_weight = cached.attention_maps(images.source, ac.get(REFERENCE)).largest / qkv.n
    failure = words.small_strength(images.source.strength, self_weight)
    notes = paragraph(
        budget_words.without_small_weights(tried[best], images.softmax.psnr) if best and best.key == "topk" else "",
        *(words.stripes(name(each), stride) for each in images.variants if (stride := _column_stride(each, images))),
        *(words.islands(name(each)) for each in mean_like if _has_islands(each, qkv)),
    )
    return words.findings(titles, images.noisy.psnr, images.softmax.psnr, costs, causes, failure, other, notes)


def _column_stride(attention: ac.Attention, images: Images) -> int:
    """Return the stride of atrous attention if each query attends to whole columns of the image; otherwise 0."""
    stride = getattr(attention.params, "stride", 1) if attention.key == "atrous" and not image_columns(attention) else 1
    return stride if 1 < stride < images.source.size and images.source.size % stride == 0 else 0


def _has_islands(attention: ac.Attention, qkv: QKV) -> bool:
    """Return whether linear attention gives some pixels, but not most, the same colour because they are dark."""
    is_elu = attention.key == "linear" and getattr(attention.params, "feature_map", "") == "elu+1"
    return is_elu and words.are_islands(dark_share(qkv))


def _causes(attentions: Sequence[ac.Attention], source: ImageSource, qkv: QKV) -> dict[str, str]:
    """Return why all queries of a variant have similar weights, by the names of the variants for which it is known."""
    even: dict[str, float] = {}
    causes = {}
    for attention in attentions:
        largest = cached.attention_maps(source, attention).largest
        if words.is_even(largest):
            even[name(attention)] = largest
        elif features := effective_features(qkv.q, qkv.k, attention):
            causes[name(attention)] = words.few_features(name(attention), *features)
    softmax = cached.attention_maps(source, ac.get(REFERENCE)).largest
    merged = dict.fromkeys(even, words.even_weights(even, softmax)) if even else {}
    return {each: cause for each, cause in (merged | causes).items() if cause}


def _explain(images: Images) -> None:
    """Draw the formula of non-local means, and how attention computes it."""
    st.latex(FORMULA)
    st.markdown(words.definition(images.source.patch, images.source.size**2))


def _tile_values(source: ImageSource, attention: ac.Attention) -> Mapping[str, Any]:
    """Return what the tile of a variant shows."""
    image = cached.denoised(source, attention)
    return {
        "number": _decibel(image.psnr),
        "details": _details(image),
        "image": image.image,
        "error": image.error,
        "maps": cached.attention_maps(source, attention),
        "note": cost_text(attention, cached.record(source, source.size**2)),
    }


def _decibel(value: float) -> str:
    return _("{value:.1f} dB", value=value)


def _details(image: DenoisedImage) -> str:
    return _("PSNR {psnr:.2f} dB, SSIM {ssim:.3f}", psnr=image.psnr, ssim=image.ssim)
