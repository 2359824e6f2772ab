"""The area between two piecewise linear curves: its mean height, and its share where the first curve is higher."""

from collections.abc import Iterator, Sequence


def mean_gap(x: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float:
    """Return the area between two piecewise linear curves, divided by the length of their axis.

    Args:
        x: rising positions on the axis, at least two; logarithms for a logarithmic axis.
        first: heights of one curve at these positions.
        second: heights of the other curve.
    """
    area = sum(width * (above + below) for width, above, below in _segments(x, first, second))
    return area / (x[-1] - x[0])


def share_above(x: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float:
    """Return the share of the area between two curves where the first is above the second; 0.5 for equal curves.

    Arguments are as in ``mean_gap``.
    """
    segments = list(_segments(x, first, second))
    above = sum(width * part for width, part, _ in segments)
    below = sum(width * part for width, _, part in segments)
    return above / (above + below) if above + below else 0.5


def _segments(
    x: Sequence[float], first: Sequence[float], second: Sequence[float]
) -> Iterator[tuple[float, float, float]]:
    """Yield, for each segment, its width and the mean heights of the first curve above and below the second."""
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    for start, end, left, right in zip(x, x[1:], gaps, gaps[1:], strict=False):
        if left * right >= 0:
            mean = (left + right) / 2
            yield end - start, max(mean, 0.0), max(-mean, 0.0)
        else:  # The curves cross within the segment, so the area between them consists of two triangles.
            total = abs(left) + abs(right)
            parts = left * abs(left) / total / 2, right * abs(right) / total / 2
            yield end - start, max(*parts), -min(*parts)
