"""The Picture page for a handwritten digit that a trained model reads: each variant's attention over the pixels."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import MatrixView
from app.picture_board import Tile
from app.state.session import REFERENCE
from app.ui import navigation
from app.words.i18n import _
from app.words.labels import reference_name
from attention_core.analysis.denoised_image import maps_with_mean
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.formatting import percent
from attention_core.inputs.positions import OWN
from attention_core.inputs.trained import TrainedSource, sequence_of
from pages.picture import digit_words, words
from pages.picture.subject import Subject, cost_share, cost_text, name, shown_variants

FORMULA = r"o_i = \frac{\sum_j e^{q_i \cdot k_j / \sqrt{d}}\, v_j}{\sum_l e^{q_i \cdot k_l / \sqrt{d}}}"

SHARED_VALUES: dict[str, Any] = {"causal": False, "positions": OWN}
"""Shared values with which another page shows the same attention."""


def subject(source: TrainedSource, head: int | None) -> Subject:
    """Return a digit as a subject of the page, for one head, or for the average of all heads if ``head`` is None."""
    digit = int(sequence_of(source.spec, source.sequence).targets[0, 0])
    pixels = _pixels(source)
    compared = {each: _compared(source, head, each) for each in shown_variants(len(pixels))}
    ranked = {each: error for each, result in compared.items() if (error := _ranked_error(each, result)) is not None}
    return Subject(
        side=len(pixels),
        variants=tuple(compared),
        tiles=[Tile(key="original", title=_("Digit {digit}", digit=digit), image=pixels)],
        draw=partial(_tile_values, source, head),
        findings=digit_words.error_ranking(
            {name(each): error for each, error in ranked.items()},
            next(iter(compared.values())).uniform_error,
            {name(each): cost_share(each, cached.record(source)) for each in compared},
        ),
        legend=digit_words.digit_legend(),
        units=digit_words.digit_units(averaged=head is None and cached.record(source).heads > 1),
        views={
            "explain": partial(_explain, source),
            "numbers": partial(_link_to_matrices, "numbers"),
            "budget": _link_to_error,
            "download": partial(_link_to_matrices, "download"),
        },
    )


def _pixels(source: TrainedSource) -> np.ndarray:
    inputs = sequence_of(source.spec, source.sequence).inputs
    side = math.isqrt(source.spec.length)
    return inputs.reshape(side, side, 1).numpy()


def _compared(source: TrainedSource, head: int | None, attention: ac.Attention) -> MatrixComparison:
    return cached.matrix(MatrixView(source=source, head=head, causal=False, special=True), attention)


def _ranked_error(attention: ac.Attention, compared: MatrixComparison) -> float | None:
    """Return the output error; None for softmax, for variants not compared with it, and if it is not finite."""
    is_ranked = attention.word != REFERENCE and attention.variant.reference is None
    return compared.output_error if is_ranked and math.isfinite(compared.output_error) else None


def _tile_values(source: TrainedSource, head: int | None, attention: ac.Attention) -> Mapping[str, Any]:
    """Return what the tile of a variant shows: the digit, the attention over it, and the output error."""
    compared = _compared(source, head, attention)
    note = cost_text(attention, cached.record(source))
    tile = {"image": _pixels(source), "maps": maps_with_mean(compared.weights), "note": note}
    if attention.word == REFERENCE:
        return {**tile, "number": _("reference")}
    return {
        **tile,
        "number": _("error {error}", error=percent(compared.output_error)),
        "details": digit_words.digit_details(name(attention), reference_name(attention), compared.output_error),
    }


def _explain(source: TrainedSource) -> None:
    """Draw the formula of softmax attention, and how the model applies it to the pixels."""
    st.latex(FORMULA)
    st.markdown(digit_words.digit_tokens(source.spec.length, source.layer))


def _link_to_matrices(view: str) -> None:
    """Draw a link to the numbers or files of the same matrices."""
    st.markdown(words.matrices_note())
    navigation.link("matrices", _("Open in Matrices"), fields={"more": [view]}, **SHARED_VALUES)


def _link_to_error() -> None:
    """Draw why a digit has no PSNR, and a link to the output error over each budget."""
    st.markdown(words.no_psnr_note())
    navigation.link(
        "error", _("Open in Error"), fields={"against": ["budget"], "fidelity": ["output"]}, **SHARED_VALUES
    )
