"""Numbers as they are written for reading, in sentences, tables and figures; and words marked for translators."""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

SMALL = 3
"""Zeros after the point up to which a number is written out."""
HUGE = 6
"""A number with more digits than this before the point is a power of ten to `number`."""
CHOSEN = 10
"""Significant digits kept of a number that somebody chose: more come from binary fractions."""
MIB = 2**20
"""Bytes."""
MINUS = "\N{MINUS SIGN}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(value: float, digits: int | None = 3) -> str:
    """A number for reading: whole numbers whole, thousands apart, very small ones as a power of ten.

    Args:
        value: the number; NaN, which is what could not be measured, becomes a dash.
        digits: significant digits; digits before the point are never rounded away. None for a number that was not
            measured but chosen, which is written as it was.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    if value == round(value):
        return formatted(value, ",.0f")
    kept = digits or CHOSEN
    value = float(f"{value:.{kept - 1}e}") if abs(value) < 10**kept else round(value)
    size = math.floor(math.log10(abs(value)))
    if size < -SMALL:
        value, tail = value / 10**size, _power(size)
        size = 0
    else:
        tail = ""
    shown = formatted(value, f",.{max(kept - 1 - size, 0)}f")
    return (shown if digits else shown.rstrip("0").rstrip(".")) + tail


def number(value: float, digits: int = 2) -> str:
    """A number of any size, for a sentence: ``520``, ``2.1 × 10⁻⁴``, ``3 × 10⁹``.

    Args:
        value: the number.
        digits: significant digits; those before the point are never rounded away unless there are very many.
    """
    if not math.isfinite(value) or abs(value) < 10**HUGE:
        return written(value, digits)
    mantissa, size = f"{value:.{digits - 1}e}".split("e+")
    return written(float(mantissa), digits) + _power(int(size))


def percent(share: float) -> str:
    """A share, however large or small, as per cent."""
    return number(100 * share) + "%"


def read_off(n: float) -> str:
    """A count read off a line between two measured ones: two digits are all it has."""
    return f"{float(f'{n:.2g}'):,.0f}"


def memory(held: float) -> str:
    """Bytes in the larger of KiB and MiB that fits."""
    return f"{held / MIB:,.1f} MiB" if held >= MIB else f"{held / 2**10:,.1f} KiB"


def formatted(value: float, form: str) -> str:
    """Return a number in one of Python's formats, as the lab writes numbers.

    A minus sign replaces the hyphen, zero has no sign, powers of ten are written out (``1.4 × 10³``), NaN is a dash and
    an infinite number ``∞``.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    text = format(value, form)
    mantissa, exponent, size = text.partition("e")
    if exponent and form.endswith("g") and 0 <= int(size) < HUGE:  # "1.2e+02" is 120
        text = format(float(text), "+,.0f" if "+" in form else ",.0f")
    elif exponent:
        percent = "%" if size.endswith("%") else ""
        text = mantissa + _power(int(size.removesuffix("%"))) + percent
    if not re.search("[1-9]", mantissa):
        return text.lstrip("+-")
    return MINUS + text[1:] if text.startswith("-") else text


class Written(float):
    """A number that a sentence formats as ``formatted`` does, in whatever format the sentence names."""

    def __format__(self, form: str) -> str:
        """Return the number in this format."""
        return formatted(float(self), form)


def at_most(value: float, digits: int = 1) -> str:
    """Return an upper bound as ``number`` writes it, rounded up: the value never exceeds what is written."""
    return number(_towards(value, digits, ROUND_CEILING), digits)


def at_least(value: float, digits: int = 1) -> str:
    """Return a lower bound as ``number`` writes it, rounded down: the value is never below what is written."""
    return number(_towards(value, digits, ROUND_FLOOR), digits)


def _towards(value: float, digits: int, rounding: str) -> float:
    if not math.isfinite(value) or value == 0:
        return value
    exact = Decimal(repr(float(value)))  # as short as tells it apart: 3e-6 is not rounded up to 4e-6
    last = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return float(exact.quantize(last, rounding, Context(prec=400)))


def between(low: float, high: float, form: str) -> str:
    """A range."""
    return f"{formatted(low, form)} … {formatted(high, form)}"


def span(low: float, high: float, form: str) -> str:
    """A range, or the one number where both ends are written alike."""
    alike = formatted(low, form) == formatted(high, form)
    return formatted(low, form) if alike else between(low, high, form)


def _power(size: int) -> str:
    return f" × 10{str(size).translate(RAISED)}".replace(" ", "\N{NO-BREAK SPACE}")


def N_(message: str) -> str:  # noqa: N802 - the name by which gettext's tools know it
    """The message as it is: marks for translators what is translated where it is shown."""
    return message
