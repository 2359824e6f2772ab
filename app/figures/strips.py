"""One strip of tokens per variant: what moved before a place in one ramp, from it on in another, what rests in grey."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from app.figures.theme import DARK, LIGHT, Colour, finish

_DECADES = 6
"""The ramps' length: a smaller move has the colour of the smallest on them."""
_NAMED = 30
"""Tokens named on the axis at most, evenly spread: more would overlap on a phone; hovering names any."""
_ROW, _HEAD, _FOOT = 42, 68, 96
"""Pixels of a strip with its title, of the legends above all strips, and of the axis below."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Strip:
    """One variant.

    Attributes:
        title: over the strip.
        sizes: ``[n]``, zero where nothing moves.
    """

    title: str
    sizes: np.ndarray


def strips(
    rows: Sequence[Strip],
    place: int,
    labels: Sequence[str],
    *,
    dark: bool,
    x_title: str,
    before: str,
    after: str,
    still: str,
) -> go.Figure:
    """Draw the strips over one axis of tokens.

    Args:
        rows: from top to bottom.
        place: the token that was replaced.
        labels: one per token.
        dark: whether it stands on a dark page.
        x_title: the axis.
        before: what the ramp left of the place is.
        after: what the ramp from the place on is.
        still: what grey is.
    """
    ramps = DARK if dark else LIGHT
    n = len(labels)
    sizes = np.full((2 * len(rows), n), np.nan)  # every second row is left free, for the title
    for i, strip in enumerate(rows):
        sizes[2 * i + 1] = strip.sizes
    with np.errstate(divide="ignore"):
        logs = np.where(sizes > 0, np.log10(sizes), np.nan)
    top = float(np.ceil(np.nanmax(logs))) if np.isfinite(logs).any() else 0.0
    scale = {"zmin": top - _DECADES, "zmax": top}
    left = np.arange(n) < place
    names = [f"{i} “{_plain(label)}”" for i, label in enumerate(labels)]
    gaps = {"ygap": 0, "xgap": 1 if n <= 128 else 0, "hoverongaps": False, "text": [names] * len(sizes)}
    figure = go.Figure()
    figure.add_heatmap(
        z=np.where(sizes == 0, 0.0, np.nan),
        showscale=False,
        colorscale=[[0, _css(ramps.masked)], [1, _css(ramps.masked)]],
        hovertemplate="%{text}: " + still + "<extra></extra>",
        **gaps,
    )
    for shown, ramp, name, x in ((left, ramps.negative, before, 0.0), (~left, ramps.positive, after, 0.5)):
        figure.add_heatmap(
            z=np.where(shown, logs, np.nan),
            colorscale=_scale(ramp),
            customdata=sizes,
            **scale,
            **gaps,
            hovertemplate="%{text}: %{customdata:.2g}<extra></extra>",
            colorbar={
                "orientation": "h",
                "len": 0.44,
                "x": x,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "xpad": 0,
                "ypad": 2,
                "thickness": 8,
                "outlinewidth": 0,
                "title": {"text": name, "side": "top", "font": {"size": 12}},
                "tickvals": top - np.array([5, 3, 1]),
                "ticktext": [f"10<sup>{top - k:.0f}</sup>" for k in (5, 3, 1)],
            },
        )
    for i, strip in enumerate(rows):
        figure.add_annotation(
            x=-0.5, y=2 * i + 0.1, text=strip.title, showarrow=False, xanchor="left", yanchor="middle", xshift=-3
        )
        figure.add_shape(
            type="rect",
            x0=place - 0.5,
            x1=place + 0.5,
            y0=2 * i + 0.5,
            y1=2 * i + 1.5,
            line={"width": 2, "color": _css(ramps.positive[-1])},
        )
    named = range(0, n, -(-n // _NAMED))
    figure.update_xaxes(
        title=x_title,
        range=[-0.5, n - 0.5],
        showgrid=False,
        zeroline=False,
        automargin=False,
        tickangle=-60,
        tickvals=list(named),
        ticktext=[_short(labels[i]) for i in named],
    )
    figure.update_yaxes(visible=False, range=[2 * len(rows) - 0.5, -0.5])
    finish(figure, height=_ROW * len(rows) + _HEAD + _FOOT)
    return figure.update_layout(margin={"t": _HEAD, "b": _FOOT})


def _scale(ramp: Sequence[Colour]) -> list[list[object]]:
    # The palest stop is the page's own colour: what moves a little must not look like paper.
    stops = np.array(ramp, float)
    places = np.linspace(0.35, len(ramp) - 1, 9)
    colours = np.stack([np.interp(places, range(len(ramp)), channel) for channel in stops.T], -1).round()
    return [[i / 8, _css(colour)] for i, colour in enumerate(colours)]


def _css(colour: Sequence[float]) -> str:
    return "rgb({:.0f},{:.0f},{:.0f})".format(*colour)


def _short(label: str) -> str:
    return _plain(label if len(label) <= 9 else label[:8] + "…")


def _plain(label: str) -> str:
    # Plotly reads tags; a token is never a tag.
    return label.replace("&", "&amp;").replace("<", "&lt;")
