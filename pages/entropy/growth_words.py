"""The findings of the “Spread by length” view: how softmax's effective keys grow, and what log n scaling changes."""

import math
from collections.abc import Mapping
from typing import Any

from app.figures.lines.spread import Spread
from app.words.finding import Finding
from app.words.i18n import N_, _, paragraph
from app.words.labels import every_key
from attention_core.formatting import number
from attention_core.metrics.entropy import uniform_entropy

SAME_RATIO = 1.05
"""Ratio up to which two numbers of effective keys count as equal."""
MIN_CHANGE = 1e-3
"""Smallest relative difference of two numbers of effective keys that shows an effect of log n scaling."""


DIGITS = range(2, 18)
"""Numbers of significant digits to try for a number of effective keys; with the last one, every float is exact."""


def keys_share(keys: float, n: int, *, causal: bool) -> float:
    """Return effective keys divided by the effective keys of uniform attention (n without a causal mask)."""
    return keys / math.exp(uniform_entropy(n, causal=causal))


def keys_and_share(keys: float, n: int, *, causal: bool) -> tuple[str, str]:
    """Return a number of effective keys and its share of all keys as texts.

    The share is a whole percentage, or has one digit if it is below 1%. The number of keys has just enough digits that
    a reader who divides it by n gets that share. With a causal mask, two digits are used, because the reader cannot
    compute the share: each query has its own number of keys.
    """

    def share(count: float) -> float:
        return 100 * keys_share(count, n, causal=causal)

    unit = min(1.0, 10 ** math.floor(math.log10(share(keys))))
    rounded = round(share(keys) / unit) * unit
    texts = (number(keys, digits) for digits in DIGITS)
    # Use the fewest digits with which the share, computed from the text, rounds to ``rounded``. The factor 0.51, not
    # 0.5, also accepts a share halfway between two percentages.
    accepted = (text for text in texts if causal or abs(share(float(text.replace(",", ""))) - rounded) < 0.51 * unit)
    return next(accepted), f"{number(rounded, 1)}%"


def main_finding(
    softmax: Spread, scaled: Spread | None, base: int = 0, *, causal: bool = False, is_text: bool = False
) -> Finding:
    """Return how softmax's effective keys and their share change with length.

    If log n scaling is drawn, the explanation includes its effect.

    Args:
        softmax: softmax's effective keys by length.
        scaled: softmax's effective keys with log n scaling; None if that curve is not drawn.
        base: reference length of log n scaling, if that curve is drawn.
        causal: whether a causal mask is used.
        is_text: whether the input is one text.
    """
    if not softmax.x:
        return Finding(_("Measuring **softmax** …"))
    first_keys, last_keys = softmax.middle[0], softmax.middle[-1]
    a, b = int(softmax.x[0]), int(softmax.x[-1])
    values: dict[str, Any] = {"a": a, "b": b, "few": number(first_keys), "many": number(last_keys)}
    values["where"] = _("In this text") if is_text else _("On this input")
    if len(softmax.x) == 1:
        return Finding(
            _("At {a:,} tokens, a query's weight is as spread out as equal weights on {few} keys.", **values),
            _("Measuring growth needs at least three lengths. Use a longer input."),
        )
    log_n = dict(zip(scaled.x, scaled.middle, strict=True)) if scaled else {}
    lengths = [int(n) for n in softmax.x if n in log_n]  # during a run, one curve can have more points
    own = dict(zip(softmax.x, softmax.middle, strict=True))
    changes = any(not math.isclose(log_n[n], own[n], rel_tol=MIN_CHANGE) for n in lengths)
    scaling = (
        log_n_effect(base, shortest=lengths[0], longest=lengths[-1], causal=causal)
        if len(lengths) > 1 and changes
        else ""
    )
    if last_keys <= SAME_RATIO * first_keys:
        return Finding(
            _("**{where}, attention does not spread over more keys as the length grows.**", **values),
            paragraph(effective_keys_text(values), scaling),
        )
    growth = keys_share(last_keys, b, causal=causal) / keys_share(first_keys, a, causal=causal)
    for n, keys, count, share in ((a, first_keys, "few", "before"), (b, last_keys, "many", "after")):
        values[count], values[share] = keys_and_share(keys, n, causal=causal)
    values["keys"] = every_key(causal=causal)
    if values["before"] == values["after"] or 1 / SAME_RATIO <= growth <= SAME_RATIO:
        finding = _(
            "**{where}, attention spreads over {few} effective keys at {a:,} tokens and {many} at {b:,} tokens, about "
            "the same share of {keys}.**",
            **values,
        )
    elif growth < 1:
        finding = _(
            "**{where}, attention spreads over {few} effective keys at {a:,} tokens and {many} at {b:,} tokens, a "
            "smaller share of {keys}.**",
            **values,
        )
    else:
        finding = _(
            "**{where}, attention spreads over {few} effective keys at {a:,} tokens and {many} at {b:,} tokens, a "
            "larger share of {keys}.**",
            **values,
        )
    return Finding(finding, paragraph(effective_keys_text(values), scaling))


def effective_keys_text(values: Mapping[str, Any]) -> str:
    """Return what softmax's number of effective keys at the longest length means."""
    return _(
        "At {b:,} tokens, the weight is spread as widely as equal weights on {many} keys (the number of effective "
        "keys).",
        **values,
    )


def log_n_finding(softmax: Spread, scaled: Spread | None) -> str:
    """Return the finding that the number of effective keys grows by a smaller factor with log n scaling.

    Return "" if the number does not grow with softmax, if it grows by the same factor with log n scaling, or if the
    curves do not have at least two lengths in common.
    """
    log_n = dict(zip(scaled.x, scaled.middle, strict=True)) if scaled else {}
    own = {n: keys for n, keys in zip(softmax.x, softmax.middle, strict=True) if n in log_n}
    growth = own[max(own)] / own[min(own)] if len(own) > 1 else 1.0
    if growth <= SAME_RATIO:
        return ""
    low, high = (choose(log_n[n] for n in own) for choose in (min, max))
    if high / low * SAME_RATIO >= growth:
        return ""
    if high <= SAME_RATIO * low:
        return _("**With log n scaling, the number of effective keys stays at about {low}.**", low=number(low))
    low_text, high_text = range_texts(low, high)
    text = (
        N_("**With log n scaling, the number of effective keys grows only from {low} to {high}.**")
        if [log_n[n] for n in (min(own), max(own))] == [low, high]
        else N_("**With log n scaling, the number of effective keys stays between {low} and {high}.**")
    )
    return _(text, low=low_text, high=high_text)


def range_texts(low: float, high: float) -> tuple[str, str]:
    """Return two different positive numbers as different texts with equally many digits after the decimal point."""
    decimals = (len(number(high, digits).partition(".")[2]) for digits in DIGITS)
    texts = ((f"{low:,.{count}f}", f"{high:,.{count}f}") for count in decimals)
    return next(pair for pair in texts if pair[0] != pair[1])


def log_n_effect(base: int, *, shortest: int, longest: int, causal: bool) -> str:
    """Return what log n scaling does to the weights.

    Args:
        base: the reference length of log n scaling, at which its factor is one.
        shortest: the shortest length in tokens.
        longest: the longest length in tokens.
        causal: whether a causal mask is used. Each query then has its own number of keys, and its own factor.
    """
    if longest <= base:
        effect = _("This flattens the weights at fewer than {base} tokens.", base=base)
    elif causal:
        effect = _(
            "This flattens the weights of queries with fewer than {base} keys and sharpens those of queries with more "
            "keys.",
            base=base,
        )
    elif shortest < base:
        effect = _(
            "This flattens the weights at fewer than {base} tokens and sharpens them at more than {base} tokens.",
            base=base,
        )
    else:
        effect = _("This sharpens the weights at more than {base} tokens.", base=base)
    return paragraph(
        _("Log n scaling multiplies every logit by log n / log {base}, which is 1 for {base} keys.", base=base)
        if causal
        else _("Log n scaling multiplies every logit by log n / log {base}, which is 1 at {base} tokens.", base=base),
        effect,
    )
