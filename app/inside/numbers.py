"""Numbers in the sentences of stories, as they are written in a text."""

import math

from attention_core.writing import RAISED, written

HUGE = 6
"""Numbers with more digits than this before the point are written as a power of ten."""


def number(value: float, digits: int = 2) -> str:
    """A number for reading: ``520``, ``2.1 × 10⁻⁴``, ``3 × 10⁹``, with a minus sign where it is negative.

    Args:
        value: the number.
        digits: significant digits; those before the point are never rounded away unless there are very many.
    """
    tail = ""
    if math.isfinite(value) and abs(value) >= 10**HUGE:
        mantissa, size = f"{value:.{digits - 1}e}".split("e+")
        value, tail = float(mantissa), f"\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{str(int(size)).translate(RAISED)}"
    return written(value, digits).replace("-", "\N{MINUS SIGN}") + tail
