"""Formats numbers for sentences, tables and figures, and defines ``N_``, which marks messages for translation."""

import math
import re
from decimal import ROUND_CEILING, Context, Decimal

MAX_LEADING_ZEROS = 3
"""Maximum number of zeros after the decimal point; ``format_readable`` shows smaller numbers as powers of ten."""
MAX_INTEGER_DIGITS = 6
"""Maximum number of digits before the decimal point; ``number`` shows larger numbers as powers of ten."""
MAX_PERCENT_DECIMALS = 3
"""Maximum number of decimal places by which ``percent`` distinguishes a share from 100%."""
SETTING_DIGITS = 10
"""Significant digits of a number that was set, not measured; further digits are rounding errors of binary fractions."""
MIB = 2**20
"""Bytes in a MiB."""
MINUS = "\N{MINUS SIGN}"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_readable(value: float, digits: int | None = 3) -> str:
    """Format a number for reading, with separated thousands and very small numbers as powers of ten.

    Args:
        value: the number; NaN means that it could not be measured and becomes a dash.
        digits: significant digits; digits before the decimal point are never rounded away. None for a number
            that was set, not measured; such a number is written with all its digits.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    if value == round(value):
        return formatted(value, ",.0f")
    significant = digits or SETTING_DIGITS
    value = float(f"{value:.{significant - 1}e}") if abs(value) < 10**significant else round(value)
    size = math.floor(math.log10(abs(value)))
    if size < -MAX_LEADING_ZEROS:
        value, power = value / 10**size, _power(size)
        size = 0
    else:
        power = ""
    digits_text = formatted(value, f",.{max(significant - 1 - size, 0)}f")
    return (digits_text if digits else digits_text.rstrip("0").rstrip(".")) + power


def number(value: float, digits: int = 2) -> str:
    """Format a number of any size for a sentence: ``520``, ``2.1 × 10⁻⁴``, ``3 × 10⁹``.

    Args:
        value: the number.
        digits: significant digits; digits before the decimal point are kept up to ``MAX_INTEGER_DIGITS``.
    """
    if not math.isfinite(value) or abs(value) < 10**MAX_INTEGER_DIGITS:
        return format_readable(value, digits)
    mantissa, size = f"{value:.{digits - 1}e}".split("e+")
    return format_readable(float(mantissa), digits) + _power(int(size))


def percent(share: float) -> str:
    """Format a share from 0 to 1 as a percentage; very small shares are written with powers of ten.

    A share below 1 is not rounded to 100%. It gets up to ``MAX_PERCENT_DECIMALS`` decimal places for this, and is
    written as 100% only if these do not suffice, because it then differs from 1 by a rounding error.
    """
    decimals = range(MAX_PERCENT_DECIMALS + 1)
    needed = next((n for n in decimals if share >= 1 or round(100 * share, n) < 100), 0)
    return number(100 * share, 2 + needed) + "%"


def format_interpolated(n: float) -> str:
    """Format a count that was interpolated between two measured counts, rounded to two significant digits."""
    return f"{float(f'{n:.2g}'):,.0f}"


def memory(n_bytes: float) -> str:
    """Format a number of bytes in MiB; in KiB if it is less than one MiB, and in bytes if it is less than one KiB."""
    if round(n_bytes) < 2**10:
        return f"{n_bytes:.0f} B"
    return f"{n_bytes / MIB:,.1f} MiB" if n_bytes >= MIB else f"{n_bytes / 2**10:,.1f} KiB"


def formatted(value: float, form: str) -> str:
    """Format a number with a Python format specification, in the typography of the app.

    A minus sign replaces the hyphen and zero has no sign. Powers of ten are written out (``1.4 × 10³``). NaN is a dash
    and an infinite number ``∞``.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    text = format(value, form)
    mantissa, exponent, size = text.partition("e")
    if exponent and form.endswith("g") and 0 <= int(size) < MAX_INTEGER_DIGITS:  # "1.2e+02" is shown as 120
        text = format(float(text), "+,.0f" if "+" in form else ",.0f")
    elif exponent:
        percent = "%" if size.endswith("%") else ""
        text = mantissa + _power(int(size.removesuffix("%"))) + percent
    if not re.search("[1-9]", mantissa):
        return text.lstrip("+-")
    return MINUS + text[1:] if text.startswith("-") else text


class FormattedFloat(float):
    """A float whose ``__format__`` is ``formatted``, so that templates filled with it use the app's typography."""

    def __format__(self, form: str) -> str:
        return formatted(float(self), form)


def at_most(value: float, digits: int = 1) -> str:
    """Format an upper bound like ``number``, rounded up, so that the text is never less than the value."""
    if not math.isfinite(value) or value == 0:
        return number(value, digits)
    # The float 3e-6 may be slightly larger than 3e-6 and would be rounded up to 4e-6. Its repr is exactly "3e-06".
    exact = Decimal(repr(float(value)))
    last_digit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return number(float(exact.quantize(last_digit, ROUND_CEILING, Context(prec=400))), digits)


def between(low: float, high: float, form: str) -> str:
    """Format a range as ``low … high``; ``form`` is a format specification, as in ``formatted``."""
    return f"{formatted(low, form)} … {formatted(high, form)}"


def span(low: float, high: float, form: str) -> str:
    """Format a range like ``between``, or as a single number if both ends are formatted identically."""
    equal = formatted(low, form) == formatted(high, form)
    return formatted(low, form) if equal else between(low, high, form)


def _power(size: int) -> str:
    return f" × 10{str(size).translate(SUPERSCRIPTS)}".replace(" ", "\N{NO-BREAK SPACE}")


def N_(message: str) -> str:  # noqa: N802 - gettext's tools look for this name
    """Return the message unchanged; the call marks it for extraction, and the message is translated when shown."""
    return message
