"""Numbers as they are written in a sentence."""

import math

SMALL = 3
"""Zeros after the point up to which a number is written out."""
CHOSEN = 10
"""Significant digits kept of a number that somebody chose: more come from binary fractions."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(value: float, digits: int | None = 3) -> str:
    """A number for reading: whole numbers whole, thousands apart, very small ones as a power of ten.

    Args:
        value: the number; NaN, which is what could not be measured, becomes a dash.
        digits: significant digits; digits before the point are never rounded away. None for a number that was not
            measured but chosen, which is written as it was.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if value == round(value):
        return f"{value:,.0f}"
    kept = digits or CHOSEN
    value = float(f"{value:.{kept - 1}e}") if abs(value) < 10**kept else round(value)
    size = math.floor(math.log10(abs(value)))
    if size < -SMALL:
        value, tail = value / 10**size, f" × 10{str(size).translate(RAISED)}".replace(" ", "\N{NO-BREAK SPACE}")
        size = 0
    else:
        tail = ""
    shown = f"{value:,.{max(kept - 1 - size, 0)}f}"
    return (shown if digits else shown.rstrip("0").rstrip(".")) + tail
