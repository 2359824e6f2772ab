"""The text of the Timing page on how time and memory are measured."""

import streamlit as st

from app.ui.lazy import lazy_popover
from app.words.i18n import _
from attention_core.benchmarking.run_summary import FITTED_LENGTHS


def show() -> None:
    """Draw how time and memory are measured."""

    def draw() -> None:
        st.markdown(
            _(
                "**Order.** Every round measures all variants at all lengths, except where calls take too much time "
                "or memory. At each length, the order of the variants is reversed from round to round. A temporary "
                "slowdown of the machine therefore affects all variants.\n\n"
                "**Warm-up.** Each variant has one untimed call before its first sample at a length. Short calls have "
                "an untimed call before every sample, and for very short calls, the sample is the mean of several "
                "calls. For slow calls, three samples can be enough.\n\n"
                "**Time.** Lines show medians over the rounds, and bands show the quartiles. The ratio to softmax's "
                "time is computed within each round. On CUDA, events on the device measure the time.\n\n"
                "**Softmax** is torch's fused kernel. In a decode step, it computes the attention of one query to a "
                "cache of n keys and values.\n\n"
                "**Variants** are sequences of torch operations that are not fused into one.\n\n"
                "**Mask** (dotted). Full attention computes every pair, and a precomputed mask hides some pairs. The "
                "mask is passed to the fused kernel, or applied to an explicit n × n matrix of scores. Masks that "
                "need too much memory are skipped.\n\n"
                "**Growth.** The exponent is the slope of a line fitted to the {tail} longest lengths on log-log "
                "axes. R² is the quality of that fit, at most 1. *Faster than softmax from* is the interpolated "
                "length from which the median ratio to softmax's time is below 1 at every measured length. In "
                "brackets, *a to b* means that the ratio's lower quartile is at least 1 at length a, and that its "
                "upper quartile is below 1 from length b on. *No clear difference* means that the quartiles of the "
                "ratio at the longest length lie on both sides of 1, or its median differs from 1 by less than 5%.\n\n"
                "**Memory.** The peak is the largest number of bytes allocated at the same time, without the inputs. "
                "For a decode step, the chart and the table add the cache or state that the step reads. On the "
                "CPU, only tensors are counted, not buffers inside a kernel. On CUDA, the allocator's peak is used.\n\n"
                "**Inputs.** Queries, keys and values are drawn from a normal distribution, and the batch size is 1. "
                "Times hardly depend on the values.",
                tail=FITTED_LENGTHS,
            )
        )

    lazy_popover(_("Measuring method"), draw, key="timing.method", icon=":material/menu_book:", type="tertiary")
