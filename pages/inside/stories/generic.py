"""The explanation on the Inside page for variants without their own module: one step per intermediate result."""

from functools import partial

import numpy as np

from app.words.i18n import _, _n, paragraph
from attention_core.analysis.low_rank.factors import perplexity, rank
from attention_core.formatting import number
from attention_core.metrics.passport import rows_are_distributions
from attention_core.variant import Intermediate
from pages.inside import pictures
from pages.inside.pooling import block_names, pool_names
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step

EQUAL_TOLERANCE = 1e-4
"""Two matrices are equal if they differ by at most this share of the largest weight, because of rounding."""
LOG_AXIS_RATIO = 8
"""Bars of positive numbers have a logarithmic axis if the largest number exceeds this multiple of the median."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build one step for each intermediate, and the comparison with the reference."""
    declared = data.attention.variant.intermediates
    return *(LazyStep(_(each.title), partial(_step, data, each)) for each in declared), compare_with_reference(data)


def _step(data: HeadData, declared: Intermediate) -> Step:
    values = data.parts[declared.name]
    vector = values.ndim == 1 or values.shape == (len(data.labels), 1)
    values = values.reshape(-1) if vector else _visible(data, declared, values)
    return Step(
        mechanism=_(declared.mechanism),
        formula=declared.formula.replace(declared.symbol, pictures.symbol(0, declared.symbol), 1),
        shapes={declared.symbol: values.shape},
        findings=vector_findings(values, data)
        if vector
        else matrix_findings(values, of_weights=declared.columns not in ("channel", "entry")),
        draw=partial(_draw_vector if vector else _draw_matrix, data, declared, values),
    )


def _visible(data: HeadData, declared: Intermediate, values: np.ndarray) -> np.ndarray:
    """Return an intermediate matrix with NaN for masked pairs and for column tokens after the row's token."""
    if declared.columns == "earlier token":
        return np.where(np.tri(len(values), k=-1, dtype=bool), values, np.nan)
    if (declared.rows, declared.columns) == ("token", "token"):
        return np.where(np.tri(len(values), dtype=bool), values, np.nan)
    if (declared.rows, declared.columns) == ("query", "key"):
        return data.masked(values)
    return values


def matrix_findings(values: np.ndarray, *, of_weights: bool = True) -> str:
    """Return the sentences about a matrix: its row sums or its range, the signs of its entries, and a low rank.

    Args:
        values: the matrix, NaN where masked.
        of_weights: whether a row combines tokens or groups of tokens, so that its sum and the rank have a meaning.
    """
    shown = values[~np.isnan(values)]
    if not shown.size:
        return _("There is only one token, so there is no pair to show.")
    if shown.min() == shown.max():
        return _("Every entry of the matrix is {value}.", value=number(shown.min()))
    entries = np.nan_to_num(values)
    negative, zero = (shown < 0).mean(), (shown == 0).mean()
    sums, independent = entries.sum(-1), rank(entries)
    return paragraph(
        _(
            "The weights in each row sum to 1. On average, a row spreads them over {own:.1f} of {n} columns (effective "
            "number).",
            own=perplexity(entries).mean(),
            n=entries.shape[1],
        )
        if of_weights and entries.min() >= 0 and rows_are_distributions(sums.min(), sums.max(), 0.0)
        else _(
            "The entries of the matrix range from {low} to {high}.", low=number(shown.min()), high=number(shown.max())
        ),
        _("{share:.0%} of the matrix entries are negative.", share=negative) if negative else "",
        _("{share:.0%} of the matrix entries are exactly zero.", share=zero) if zero else "",
        _n(
            "The rank of the matrix is {n}, so all rows are multiples of one row.",
            "The rank of the matrix is {n}, so every row is a combination of the same {n} rows.",
            n=independent,
        )
        if of_weights and 0 < independent <= min(entries.shape) / 2
        else "",
    )


def vector_findings(values: np.ndarray, data: HeadData) -> str:
    """Return the sentences about the range of ``values``, one number per token, and the token with the largest."""
    if values.min() == values.max():
        return _("The chart shows the same number for every token: {value}.", value=number(values[0]))
    return _(
        "The numbers in the chart range from {low} to {high}. The largest belongs to the token “{token}”.",
        low=number(values.min()),
        high=number(values.max()),
        token=data.token(values.argmax()),
    )


def _draw_vector(data: HeadData, declared: Intermediate, values: np.ndarray, key: str) -> None:
    title, x_title = _(declared.title), _axis(declared.rows)
    log = bool(values.min() > 0 and values.max() > LOG_AXIS_RATIO * np.median(values))
    pictures.bars({title: values}, data.labels, key=key, x_title=x_title, y_title=title, alt=title, log=log)


def _draw_matrix(data: HeadData, declared: Intermediate, values: np.ndarray, key: str) -> None:
    variant_panel, reference = pictures.result_panels(data)
    is_result = values.shape == data.weights.shape and np.allclose(
        np.nan_to_num(values), data.weights, atol=EQUAL_TOLERANCE * np.abs(data.weights).max()
    )
    shown = pictures.panel(
        _(declared.title),
        values,
        _labels(data, declared.rows),
        _labels(data, declared.columns),
        row=_axis(declared.rows),
        column=_axis(declared.columns),
        caption=variant_panel.caption if is_result else "",
        mark=0,
    )
    pictures.board(key, *((shown, reference) if is_result else (shown, variant_panel, reference)), scale="panel")


def _axis(kind: str) -> str:
    names = {
        "query": _("query"),
        "key": _("key"),
        "token": _("token"),
        "earlier token": _("earlier token"),
        "entry": _("entry"),
        "channel": _("channel"),
        "feature": _("feature"),
        "block": _("block"),
        "pool": _("pool"),
        "landmark": _("landmark"),
        "basis": _("basis"),
    }
    return names[kind]


def _labels(data: HeadData, kind: str) -> list[str] | tuple[str, ...] | None:
    """Return the labels of the rows or columns of a ``kind`` such as "pool"; None if they are numbered."""
    if kind == "pool":
        return pool_names(data)
    if kind == "block":
        return block_names(data)
    return data.labels if kind in ("query", "key", "token", "earlier token") else None
