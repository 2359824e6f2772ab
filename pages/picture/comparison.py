"""The Picture page for a noisy photograph, which each variant denoises: the page's tiles, findings and views."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.picture_board import Tile
from app.state.session import REFERENCE, SharedOptions
from app.words.finding import Finding, Lines
from app.words.i18n import _
from attention_core.analysis.denoised_image import DenoisedImage
from attention_core.experiments.denoising import budgets, image_columns, square_form
from attention_core.experiments.performer_error import effective_features
from attention_core.formatting import number
from attention_core.inputs import QKV
from attention_core.inputs.image_source import ImageSource
from pages.picture import budget, numbers, words
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
    tiles = (
        Tile(key="original", title=_("Original"), image=images.clean),
        Tile(
            key="noisy",
            title=_("Noisy"),
            number=_("PSNR {value:.1f} dB", value=noisy.psnr),
            details=_details(noisy),
            image=noisy.image,
            error=noisy.error if noisy.error.any() else None,
        ),
    )
    return Subject(
        side=images.source.size,
        variants=tuple(images.variants),
        tiles=tiles,
        draw=partial(_tile_values, images.source, noisy.psnr),
        rank=_("Rank {rank} of {count} by PSNR"),
        findings=_findings(images),
        units=words.units(),
        legend=words.legend(images.source.patch, images.source.strength),
        views={
            "explain": partial(_explain, images),
            "numbers": partial(numbers.show, images),
            "budget": partial(budget.show, images),
            "download": partial(numbers.show_downloads, images),
        },
    )


def _findings(images: Images) -> Lines:
    """Return which variants come close to softmax, whether square windows are better, and which images are uniform."""
    mean_like = [each for each, image in images.variants.items() if words.is_almost_mean(image)]
    titles = {name(each): image for each, image in images.variants.items()}
    qkv = cached.record(images.source, images.source.size**2)
    costs = {name(each): cost_share(each, qkv) for each in images.variants if each.key != REFERENCE}
    causes = _causes(mean_like, images.source, qkv)
    noisy, softmax = images.noisy.psnr, _softmax_image(images)
    removal = words.noise_removal(softmax, noisy)
    first, uniform = words.findings(titles, noisy, softmax.psnr, costs, causes, removal, images.blur.psnr)
    windows = list(_window_findings(images))
    above = [Finding(each.text) for each in (*windows, *uniform)]
    return [first, above, *([Finding("", each.explanation)] for each in (*windows, *uniform))]


def _softmax_image(images: Images) -> DenoisedImage:
    return next(image for each, image in images.variants.items() if each.key == REFERENCE)


def _causes(attentions: Sequence[ac.Attention], source: ImageSource, qkv: QKV) -> dict[str, str]:
    """Return why all queries of a variant have similar weights, by the names of the variants for which it is known."""
    even: dict[str, list[str]] = {}
    causes = {}
    for attention in attentions:
        largest = cached.attention_maps(source, attention).largest
        if words.is_even(largest):
            even.setdefault(number(largest), []).append(name(attention))
        elif features := effective_features(qkv.q, qkv.k, attention):
            causes[name(attention)] = words.few_features(name(attention), *features)
    softmax = cached.attention_maps(source, ac.get(REFERENCE)).largest
    merged = {each: words.even_weights(names, size, softmax) for size, names in even.items() for each in names}
    return {each: cause for each, cause in (merged | causes).items() if cause}


def _window_findings(images: Images) -> Iterator[Finding]:
    """Yield a finding that compares a square window with windows along the row of the same cost or size, if shown."""
    side = images.source.size
    for attention in SharedOptions.variants.value:
        square_attention = square_form(attention, side)
        if attention.key != "local" or square_attention not in images.variants:
            continue
        row, square = _window(images, attention), _window(images, square_attention)
        wider = [each for each in budgets(attention, side**2) if _cost(images, each) <= square.cost]
        text = words.window_finding(_window(images, wider[-1]), square) if wider else ""
        yield Finding(text, words.window_explanation(row, square, side**2))


def _cost(images: Images, attention: ac.Attention) -> float:
    return cost_share(attention, cached.record(images.source, images.source.size**2))


def _window(images: Images, attention: ac.Attention) -> words.Window:
    """Return the window of a variant, with the quality of its image and its cost."""
    side, reach = images.source.size, attention.params.window  # type: ignore[attr-defined]
    return words.Window(
        pixels=min(2 * reach + 1, side) ** 2 if image_columns(attention) else min(2 * reach + 1, side**2),
        psnr=cached.denoised(images.source, attention).psnr,
        cost=_cost(images, attention),
    )


def _explain(images: Images) -> None:
    """Draw the formula of non-local means, and how attention computes it."""
    st.latex(FORMULA)
    st.markdown(words.definition(images.source.patch, images.source.size**2))


def _tile_values(source: ImageSource, noisy: float, attention: ac.Attention) -> Mapping[str, Any]:
    """Return what the tile of a variant shows; ``noisy`` is the PSNR of the noisy image."""
    image = cached.denoised(source, attention)
    return {
        "number": _decibel(image.psnr),
        "score": image.psnr,
        "details": _details(image),
        "tone": "better" if words.improves(image.psnr, noisy) else "worse",
        "image": image.image,
        "error": image.error,
        "maps": cached.attention_maps(source, attention),
        "note": cost_text(attention, cached.record(source, source.size**2)),
    }


def _decibel(value: float) -> str:
    return _("{value:.1f} dB", value=value)


def _details(image: DenoisedImage) -> str:
    return _("PSNR {psnr:.2f} dB, SSIM {ssim:.3f}", psnr=image.psnr, ssim=image.ssim)
