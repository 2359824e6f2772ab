"""Bar charts of measurements. A bar that summarises several measurements has whiskers from quartile to quartile."""

import textwrap
from collections.abc import Mapping, Sequence

from app.figures.lines.spread import Spread
from app.figures.theme import GREY, SERIES, Figure, axis, escape_label, finish, format_numbers

LETTERS = 64
"""Number of letters that fit side by side under the axis. A number above a bar takes the room of four letters."""


def whiskers(
    series: Mapping[str, Spread],
    labels: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    colours: Mapping[str, int] | None = None,
    log_y: bool = False,
    percent: bool = False,
    height: int = 380,
) -> Figure:
    """Draw a bar for the middle of each group of measurements, with whiskers from quartile to quartile.

    If nothing was measured more than once and there are few bars, each bar has its number above it.

    Args:
        series: measurements by name in the legend; their positions are indices into ``labels``.
        labels: labels under the axis.
        x_title: title of the horizontal axis.
        y_title: title of the vertical axis, with its unit.
        colours: indices in the shared series of colours, by the names in the legend; by default, in their order.
        log_y: whether the vertical axis is logarithmic.
        percent: whether the vertical axis and the numbers are percentages of 1.
        height: height in pixels.
    """
    room = LETTERS // max(len(labels), 1)
    has_texts = all(stats.low == stats.high for stats in series.values()) and len(series) * len(labels) <= LETTERS // 4
    data = []
    scale, unit = (100, "%") if percent else (1, "")
    for i, (name, stats) in enumerate(series.items()):
        up = [high - middle for high, middle in zip(stats.high, stats.middle, strict=True)]
        texts = [text + unit for text in format_numbers(scale * middle for middle in stats.middle)]
        down = [middle - low for middle, low in zip(stats.middle, stats.low, strict=True)]
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": list(stats.x),
                "y": list(stats.middle),
                "marker": {"color": SERIES[colours[name] if colours else i % len(SERIES)]},
                **({"text": texts} if has_texts else {}),
                "textposition": "outside",
                "cliponaxis": False,
                "error_y": {
                    "type": "data",
                    "array": up,
                    "arrayminus": down,
                    "visible": any(up) or any(down),
                    "color": SERIES[GREY],
                    "thickness": 1.5,
                    "width": 4,
                },
                "customdata": [[escape_label(labels[int(x)]), value] for x, value in zip(stats.x, texts, strict=True)],
                "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra>" + name + "</extra>",
            }
        )
    ticks = ["<br>".join(textwrap.wrap(label, max(room, 8), break_long_words=False)) for label in labels]
    figure = finish(
        data,
        height=height,
        xaxis=axis(
            x_title, tickvals=list(range(len(labels))), ticktext=ticks, automargin=True, range=[-0.6, len(labels) - 0.4]
        ),
        yaxis=axis(y_title, type="log" if log_y else "linear", rangemode="normal" if log_y else "tozero"),
        barmode="group",
    )
    if percent:
        figure["layout"]["yaxis"]["tickformat"] = "~%"
    return figure
