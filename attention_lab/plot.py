"""Charts of attention matrices, errors and entropies as plotly figures, for notebooks and scripts.

Example:
    >>> import torch
    >>> import attention_core as ac
    >>> rows = ac.sweep("error", tuple(torch.randn(3, 1, 32, 8)), ["local", "nystrom"])
    >>> figure = ac.plot.error(rows, "output")
    >>> figure.layout.yaxis.title.text
    'relative error of the output'
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from plotly.graph_objects import Figure

from attention_core import registry
from attention_core.experiments.entropy_length import EntropyRow
from attention_core.experiments.error import UNIFORM, ErrorPoint, ErrorRow, points
from attention_core.inputs.record import Array
from attention_lab.app_modules import Curve, curves, indices, spread, theme

ERRORS = {
    "matrix": "relative error of the matrix",
    "mass": "share of the weight on the wrong keys",
    "kl": "Kullback-Leibler divergence (nats)",
    "missed": "share of the heaviest keys missed",
    "output": "relative error of the output",
    "turn": "1 - cosine of the outputs",
}
"""Title of the vertical axis for each measure of ``experiments.error``."""


def matrix(weights: Array, labels: Sequence[str] | None = None, *, title: str = "") -> Figure:
    """Draw one attention matrix.

    Args:
        weights: ``[n, n]``; rows are queries, columns are keys.
        labels: one label per token; None for numbers.
        title: title of the figure.

    Returns:
        A heat map. Negative weights are brown and positive weights are blue.

    Raises:
        ValueError: if the weights are not a matrix.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> q, k, v = torch.randn(3, 16, 8)
        >>> figure = ac.plot.matrix(ac.get("softmax").weights(q, k))
        >>> figure.data[0].z.shape
        (16, 16)
    """
    if isinstance(weights, torch.Tensor):
        weights = weights.detach().to("cpu", torch.float64).numpy()  # numpy has no bfloat16
    values = np.asarray(weights, dtype=float)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"The weights have the shape {values.shape}. Pass one matrix, such as weights[head].")
    names = [] if labels is None else [theme.escape_label(str(label)) for label in labels]
    top = float(np.abs(values)[np.isfinite(values)].max(initial=0.0)) or 1.0
    low = -top if (values < 0).any() else 0.0
    ramps = theme.LIGHT
    stops = np.linspace(low / top, 1, 33)
    colours = [theme.sample_ramp(ramps.negative if at < 0 else ramps.positive, abs(at)) for at in stops]
    scale = [[i / 32, "rgb({:.0f},{:.0f},{:.0f})".format(*colour)] for i, colour in enumerate(colours)]
    ticks = {"tickvals": list(range(len(names))), "ticktext": names} if names else {}
    heat = {
        "type": "heatmap",
        "z": values,
        "zmin": low,
        "zmax": top,
        "colorscale": scale,
        "hovertemplate": "query %{y} → key %{x}: %{z:.3g}<extra></extra>",
    }
    return Figure(
        theme.finish(
            [heat],
            height=520,
            title={"text": theme.escape_label(title)},
            margin={"t": 60},
            xaxis=theme.axis("keys", side="top", constrain="domain", **ticks),
            yaxis=theme.axis("queries", autorange="reversed", scaleanchor="x", constrain="domain", **ticks),
        )
    )


def error(rows: Iterable[ErrorRow], measure: str = "output") -> Figure:
    """Draw the approximation error of each variant over its budget.

    Args:
        rows: the rows of ``sweep("error", ...)``.
        measure: one of ``ERRORS``.

    Returns:
        A line per variant and its settings other than the budget: the median over heads and seeds, with a band from the
        lower to the upper quartile. A variant without a budget is a horizontal line, and so is uniform attention.

    Raises:
        ValueError: for an unknown measure, or without rows.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> rows = ac.sweep("error", tuple(torch.randn(3, 1, 32, 8)), ["local"])
        >>> [line.name for line in ac.plot.error(rows).data if line.name]
        ['uniform', 'local']
    """
    if measure not in ERRORS:
        raise ValueError(f"The measure is {measure!r}. Choose one of {', '.join(ERRORS)}.")
    error_points = points(rows, measure)
    if not error_points:
        raise ValueError("There are no rows to draw.")
    budgets = sorted({point.budget for point in error_points if point.setting}) or [0.0, 1.0]
    by_line: dict[str, list[ErrorPoint]] = {}
    for point in error_points:
        by_line.setdefault(_without_budget(point), []).append(point)
    lines = []
    for word, index in zip(by_line, indices(list(by_line)), strict=True):
        own = sorted(by_line[word], key=lambda point: point.budget)
        flat = own[0].setting is None
        ends = [budgets[0], budgets[-1]]
        lines.append(
            Curve(
                word,
                ends if flat else [point.budget for point in own],
                [own[0].middle] * 2 if flat else [point.middle for point in own],
                low=None if flat else [point.low for point in own],
                high=None if flat else [point.high for point in own],
                colour=theme.GREY if word == UNIFORM else index,
                markers=not flat,
            )
        )
    return Figure(curves(lines, x_title="budget (the setting that trades cost for accuracy)", y_title=ERRORS[measure]))


def _without_budget(point: ErrorPoint) -> str:
    """Return the word of a point's variant with the budget at its default, so that all its budgets share one line."""
    if point.setting is None:
        return point.word
    attention = registry.from_word(point.word)
    defaults = {setting.name: setting.default for setting in attention.params.settings()}
    return attention.with_settings(**{point.setting: defaults[point.setting]}).word


def entropy(rows: Iterable[EntropyRow]) -> Figure:
    """Draw the entropy of each variant's rows over the number of tokens.

    Args:
        rows: the rows of ``sweep("entropy", ...)``.

    Returns:
        A line per variant: the median over heads of the mean entropy in nats, with a band from the lower to the upper
        quartile.

    Raises:
        ValueError: without rows.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> rows = ac.sweep("entropy", tuple(torch.randn(3, 1, 32, 8)), ["softmax"])
        >>> ac.plot.entropy(rows).layout.xaxis.title.text
        'tokens'
    """
    rows = list(rows)
    if not rows:
        raise ValueError("There are no rows to draw.")
    words = list(dict.fromkeys(row.variant for row in rows))
    lines = []
    for word, index in zip(words, indices(words), strict=True):
        entropies = spread((row.n, row.entropy) for row in rows if row.variant == word)
        lines.append(Curve(word, entropies.x, entropies.middle, low=entropies.low, high=entropies.high, colour=index))
    return Figure(curves(lines, x_title="tokens", y_title="entropy of a row (nats)", log_x=True))
