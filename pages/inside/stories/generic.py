"""The explanation on the Inside page for variants without their own module: one step per intermediate result."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from app.matrix_board import Panel
from app.words.i18n import _, _n, paragraph
from attention_core.analysis.low_rank.factors import cosines, perplexity, rank, relative_error_of
from attention_core.formatting import number, percent
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
DECAY_TOKENS = 10
"""Number of tokens after which the findings say how much of a state is left."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build one step for each intermediate, and the comparison with the reference."""
    declared = data.attention.variant.intermediates
    return *(LazyStep(_(each.title), partial(_step, data, each)) for each in declared), compare_with_reference(data)


def _step(data: HeadData, declared: Intermediate) -> Step:
    values = data.parts[declared.name]
    vector = values.ndim == 1 or values.shape == (len(data.labels), 1)
    values = values.reshape(-1) if vector else _visible(data, declared, values)
    findings, details = ("", "") if vector else matrix_findings(values, declared)
    return Step(
        mechanism=_(declared.mechanism),
        formula=declared.formula.replace(declared.symbol, pictures.symbol(0, declared.symbol), 1),
        shapes={declared.symbol: values.shape},
        findings=own_finding(data, declared, values) or findings,
        details=details,
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


def own_finding(data: HeadData, declared: Intermediate, values: np.ndarray) -> str:
    """Return what an intermediate means for its variant; empty for most, for one token and if all values are zero."""
    find = OWN_FINDINGS.get((data.attention.key, declared.name))
    if find is None or len(values) == 1 or not np.nan_to_num(values).any():
        return ""
    return find(data, values)


def _above_threshold(data: HeadData, _values: np.ndarray) -> str:
    return _(
        "On average, {kept:.1f} of a query's {keys:.3g} keys have a logit above its threshold and get weight.",
        kept=(data.weights > 0).sum(-1).mean(),
        keys=data.visible.sum(-1).mean(),
    )


def _left_in_state(_data: HeadData, gates: np.ndarray) -> str:
    count = min(DECAY_TOKENS, len(gates) - 1)
    products = np.lib.stride_tricks.sliding_window_view(gates[1:], count, axis=0).prod(-1)
    return _n(
        "{n} token later, the state still holds {share} of what a token added (mean over all gates).",
        "{n} tokens later, the state still holds {share} of what a token added (mean over all gates).",
        n=count,
        share=percent(products.mean()),
    )


def _kept_attention(data: HeadData, received: np.ndarray) -> str:
    kept = data.parts["survivors"].astype(int)
    return _n(
        "The {n} kept token receives {share} of all attention.",
        "The {n} kept tokens receive {share} of all attention.",
        n=len(kept),
        share=percent(received[kept].sum() / received.sum()),
    )


def _turned_queries(data: HeadData, solved: np.ndarray) -> str:
    cosine = np.diagonal(cosines(data.qkv.q[data.head].numpy(), solved))
    return _(
        "The angle between a query and its solved query is {angle:.0f}° (median over queries).",
        angle=np.degrees(np.median(np.arccos(np.clip(cosine, -1, 1)))),
    )


def _subtracted(_data: HeadData, components: np.ndarray) -> str:
    return _(
        "On average, a token would subtract from an earlier key a vector that is {share} as long as the key.",
        share=percent(np.nanmean(np.abs(components))),
    )


def _change(data: HeadData, values: np.ndarray) -> str:
    return _(
        "{name}'s attention matrix differs from this matrix by {change} (norm of the difference, relative to the norm "
        "of this matrix).",
        name=_(data.attention.title),
        change=percent(relative_error_of(data.weights, np.nan_to_num(values))),
    )


OWN_FINDINGS: dict[tuple[str, str], Callable[[HeadData, np.ndarray], str]] = {
    ("entmax", "threshold"): _above_threshold,
    ("gla", "kept"): _left_in_state,
    ("mesa", "linear"): _change,
    ("mesa", "solved"): _turned_queries,
    ("path", "met"): _subtracted,
    ("path", "read"): _change,
    ("power_bert", "significance"): _kept_attention,
    ("scalar_decay", "kept"): _left_in_state,
}
"""The functions that return the finding of an intermediate, by the variant's key and the intermediate's name."""


def matrix_findings(values: np.ndarray, declared: Intermediate) -> tuple[str, str]:
    """Return the finding about a matrix and its details: how a row spreads its weight, zeros, a low rank.

    The finding is empty if the rows are not distributions of weight.

    Args:
        values: the matrix, NaN where masked.
        declared: the description of the matrix.
    """
    # A row of channels or entries does not combine tokens, so its sum and the rank have no meaning.
    of_weights = declared.columns not in ("channel", "entry")
    shown = values[~np.isnan(values)]
    if not shown.size:
        return _("There is only one token, so there is no pair to show."), ""
    if shown.min() == shown.max():
        return _("Every entry of the matrix is {value}.", value=number(shown.min())), ""
    entries = np.nan_to_num(values)
    zero = (shown == 0).mean()
    sums, independent = entries.sum(-1), rank(entries)
    distributions = of_weights and entries.min() >= 0 and rows_are_distributions(sums.min(), sums.max(), 0.0)
    finding = _(
        "On average, a row spreads its weight over {own:.1f} of {n} columns (effective number).",
        own=perplexity(entries).mean(),
        n=entries.shape[1],
    )
    details = paragraph(
        _("{name}: {share:.0%} of the entries are exactly zero.", name=_(declared.title), share=zero) if zero else "",
        _n(
            "The rank of the matrix is {n}, so all rows are multiples of one row.",
            "The rank of the matrix is {n}, so every row is a combination of the same {n} rows.",
            n=independent,
        )
        if of_weights and 0 < independent <= min(entries.shape) / 2
        else "",
    )
    return finding if distributions else "", details


def _draw_vector(data: HeadData, declared: Intermediate, values: np.ndarray, key: str) -> None:
    title, x_title = _(declared.title), _axis(declared.rows)
    log = bool(values.min() > 0 and values.max() > LOG_AXIS_RATIO * np.median(values))
    pictures.bars({title: values}, data.labels, key=key, x_title=x_title, y_title=title, alt=title, log=log)


def _draw_matrix(data: HeadData, declared: Intermediate, values: np.ndarray, key: str) -> None:
    if declared is not data.attention.variant.intermediates[0]:
        pictures.board(key, _own_panel(data, declared, values), scale="panel")
        return
    variant_panel, reference = pictures.result_panels(data)
    is_result = values.shape == data.weights.shape and np.allclose(
        np.nan_to_num(values), data.weights, atol=EQUAL_TOLERANCE * np.abs(data.weights).max()
    )
    shown = _own_panel(data, declared, values)
    if is_result:
        shown = replace(shown, caption=variant_panel.caption, top=variant_panel.top)
        if reference.scale_panel:
            reference = replace(reference, scale_panel=shown.title)
        pictures.board(key, shown, reference, scale="panel")
    else:
        pictures.board(key, shown, variant_panel, reference, scale="panel")


def _own_panel(data: HeadData, declared: Intermediate, values: np.ndarray) -> Panel:
    title, caption = _(declared.title), ""
    if declared.name == "kept":  # Most gates are near 1, so their colours would be equal.
        title, values, caption = "1 − α", 1 - values, _("the share of the state that each gate removes")
    return pictures.panel(
        title,
        values,
        _labels(data, declared.rows),
        _labels(data, declared.columns),
        row=_axis(declared.rows),
        column=_axis(declared.columns),
        caption=caption,
        mark=0,
    )


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
