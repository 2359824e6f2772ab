"""Sentences of the Timing page: how long masked full attention takes, and how times are measured."""

from collections.abc import Sequence

import streamlit as st

from app.jobs.timing_runs import Series
from app.ui.lazy import lazy_popover
from app.words.i18n import _, escape_markdown
from attention_core.benchmarking.summary import TAIL, Ratio
from pages.timing.options import FORMS


def masking(found: Sequence[Series]) -> str:
    """Return the time of a mask on the full matrix compared with its variant's own algorithm; empty without a mask."""
    for line in found:
        own = next((other for other in found if line.masked and other.word == line.masked.plain.word), None)
        both = {r.n: r for r in own.ratios} if own else {}
        at = [r for r in line.ratios if r.n in both]
        if line.masked and own and at:
            return mask_in_words(own.name, _(FORMS[line.masked.form]), at[-1], both[at[-1].n])
    return ""


def mask_in_words(name: str, form: str, masked: Ratio, own: Ratio) -> str:
    """Return the time of a mask on the full matrix compared with the algorithm that skips the masked pairs.

    Args:
        name: name of the variant.
        form: how the mask is applied.
        masked: time with the mask, divided by softmax's time.
        own: time of the variant's own algorithm, divided by softmax's time, at the same length.
    """
    values = {"name": escape_markdown(name), "form": form, "masked": masked.middle, "n": masked.n, "own": own.middle}
    if masked.high < 1:
        return _(
            "**Here even a mask saves time:** that of {name}, laid on the full matrix ({form}), takes {masked:.2g}× "
            "softmax's time at {n:,} tokens; the pattern's own algorithm takes {own:.2g}×.",
            **values,
        )
    if masked.low < 1:  # The quartiles lie on both sides of 1.
        return _(
            "**Whether a mask saves time cannot be told here:** that of {name}, laid on the full matrix ({form}), "
            "takes {masked:.2g}× softmax's time at {n:,} tokens; the pattern's own algorithm takes {own:.2g}×.",
            **values,
        )
    return _(
        "**A mask saves nothing:** that of {name}, laid on the full matrix ({form}), takes {masked:.2g}× "
        "softmax's time at {n:,} tokens; the pattern's own algorithm takes {own:.2g}×.",
        **values,
    )


def show_method() -> None:
    """Draw how time and memory are measured."""

    def draw() -> None:
        st.markdown(
            _(
                "**Order.** Every round visits all lengths and, at each, all variants, forwards and backwards in turn: "
                "whatever slows the machine down slows all of them down alike. Each is called once untimed before its "
                "first sample, short calls before every one; a sample of a short call is the mean of several.\n\n"
                "**Time.** Lines are medians over the rounds, bands the quartiles. Ratios to softmax are taken within "
                "each round. On CUDA, events on the device are read after synchronising.\n\n"
                "**Softmax** is torch's fused kernel, the one to beat; a decode step of it is one query against a "
                "cache of n keys and values.\n\n"
                "**Mask on the full matrix** (dotted): every pair is computed and a mask, made beforehand, hides some. "
                "Either the fused kernel that runs softmax is handed the mask, or the n × n scores are made, hidden "
                "and made to sum to one. What would hold too many of these is left out.\n\n"
                "**Growth.** The exponent is the slope through the {tail} longest lengths on two logarithmic axes; R² "
                "says how straight they lie. *Faster from*: from there on every measured ratio is below one, read off "
                "the line between two lengths; *no clear difference* where the quartiles lie on both sides of one.\n\n"
                "**Memory.** Most bytes alive at once beyond the inputs: on the CPU counted tensor by tensor, where "
                "what a kernel holds inside itself is not seen; on CUDA the allocator's own peak.",
                tail=TAIL,
            )
        )

    lazy_popover(_("How it is measured"), draw, key="timing.method", icon=":material/menu_book:", type="tertiary")
