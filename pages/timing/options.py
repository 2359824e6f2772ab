"""The options and widgets of the Timing page, and the specification of the timing run that they describe."""

from functools import partial
from typing import Any

import streamlit as st

import attention_core as ac
from app.state import link_fields
from app.state.controls import Options, choice, integer, link_only_option, selection, switch
from app.state.session import SharedOptions, first_variants
from app.ui.lazy import lazy_popover
from app.ui.scope import Scope
from app.words.i18n import C_, N_, _
from app.words.labels import label
from attention_core.benchmarking.full_matrix_mask import Form, MaskedFullAttention
from attention_core.benchmarking.run_file import recorded_runs
from attention_core.benchmarking.timing import DTYPES, SIZES, TimingSpec
from attention_core.limits import current
from attention_core.runtime.devices import devices

FROM_FILE, NO_RUN = "loaded", "none"
"""Values of the option ``recorded`` for a run from a file and for no run.

``NO_RUN`` is also the value of the option ``masked`` for no mask.
"""
MIN_LENGTH = 16
MAX_ROUNDS = 25
"""Maximum number of timed rounds of a run; with more rounds, the quartiles change little."""
MASK_FORMS: dict[Form, str] = {"fused": N_("torch's fused kernel"), "explicit": N_("explicit n × n scores")}
"""Ways to compute full attention with a mask, and their names on screen."""
SIDE_CHARTS = {"ratio": N_("Time"), "memory": N_("Memory"), "work": N_("Multiply-adds")}
"""Charts next to the time chart, and their short names; "ratio" is the time relative to softmax."""


def doublings() -> list[int]:
    """Return the sequence lengths that can be chosen: powers of two up to the app's limit."""
    return [2**i for i in range(MIN_LENGTH.bit_length() - 1, current().timed_tokens.bit_length())]


class TimingOptions(Options, prefix="t_"):
    """The options that a link to this page carries in addition to the variants."""

    mode = choice(
        {"forward": N_("Forward"), "backward": N_("Forward + backward"), "decode": N_("Decode step")}, N_("Time of")
    )
    device = choice({"cpu": "CPU", "cuda": "CUDA"}, C_("device of a run", "On"))
    dtype = choice({name: name for name in DTYPES}, N_("Data type"))
    first = selection(lambda: {n: f"{n:,}" for n in doublings()}, N_("Fewest tokens"), default=SIZES[0], link="t_from")
    last = link_only_option(
        lambda: link_fields.one_of(min(SIZES[-1], current().timed_tokens), doublings()),
        N_("Most tokens"),
        link="t_to",
        widget=st.selectbox,
        arguments=lambda: {"options": doublings(), "format_func": "{:,}".format},
    )
    heads = integer(8, 1, lambda: current().heads, N_("Heads"))
    d = integer(64, 2, lambda: current().head_size, N_("Size of a head"))
    rounds = integer(
        5,
        1,
        MAX_ROUNDS,
        N_("Rounds"),
        widget=st.slider,
        help=N_(
            "Each variant is timed this many times at each length. After three rounds, a call is not timed again once "
            "its times add up to 2 seconds."
        ),
    )
    side = choice(SIDE_CHARTS, N_("Second chart"), opening="work")
    masked = link_only_option(
        lambda: link_fields.one_of(None, (NO_RUN, *(v.key for v in ac.all_variants() if v.mask is not None))),
        N_("Full attention with the mask of … (dotted line)"),
        help=N_(
            "Full attention computes all pairs and hides those that this variant skips. The comparison shows how "
            "much time the variant's own algorithm saves."
        ),
    )
    form = choice(MASK_FORMS, N_("Apply mask to"))
    columns = switch(False, N_("All columns"))
    at = link_only_option(lambda: link_fields.one_of(None, doublings()), N_("Length in the table"))
    recorded = link_only_option(
        lambda: link_fields.one_of(None, (*recorded_runs(), FROM_FILE, NO_RUN)), N_("Recorded run"), link="t_beside"
    )


def opening() -> dict[str, Any]:
    """Return the options of a visit without query parameters, by name: variants with the settings of a recorded run."""
    words = {word.partition("~")[0]: word for run in recorded_runs().values() for word in run.spec.variants}
    return {"variants": tuple(ac.from_word(words.get(each.key, each.word)) for each in first_variants())}


def show() -> TimingSpec:
    """Draw the controls that are always visible, and return the specification of the run."""
    TimingOptions.device.restrict_to(devices())
    TimingOptions.mode.draw(label_visibility="collapsed")
    if len(devices()) > 1:
        TimingOptions.device.draw()
    options = TimingOptions.current()
    first, last = sorted((options.first, options.last))
    return TimingSpec(
        variants=tuple(attention.word for attention in timed_variants()),
        sizes=tuple(n for n in doublings() if first <= n <= last),
        mode=options.mode,
        causal=SharedOptions.causal.value and options.mode != "decode",
        device=options.device,
        dtype=options.dtype,
        heads=options.heads,
        head_size=options.d,
        rounds=options.rounds,
    )


def show_setup(*, recorded: bool) -> None:
    """Draw the form with the other settings of the run; ``recorded`` if the page shows a recorded run."""
    draw = partial(_draw_setup, recorded=recorded)
    lazy_popover(_("Setup"), draw, key="timing.set_up", icon=":material/tune:", type="tertiary")


def _draw_setup(*, recorded: bool) -> None:
    if recorded:
        st.caption(
            _(
                "The lengths, heads, head size, rounds, data type and mask apply when you press “Measure on this "
                "server”. The run on screen keeps those with which it was measured."
            )
        )
    # On a phone, the columns are below each other, so each pair has its own row.
    for pair in ((TimingOptions.first, TimingOptions.last), (TimingOptions.heads, TimingOptions.d)):
        for column, option in zip(st.columns(2), pair, strict=True):
            with column:
                option.draw()
    TimingOptions.rounds.draw()
    TimingOptions.dtype.draw()
    _show_masked()
    TimingOptions.form.draw()


def scope() -> Scope:
    """Return the scope of the page: the timed variants, and whether they are causal.

    The mode is the timed operation, such as a decode step.
    """
    causal = SharedOptions.causal.value and TimingOptions.mode.value != "decode"
    return Scope(variants=tuple(attention.word for attention in timed_variants()), causal=causal)


def timed_variants() -> tuple[ac.Attention, ...]:
    """Return the timed variants: the chosen ones and, if the visitor wants it, full attention with a variant's mask."""
    maskable, masked = _maskable(), TimingOptions.masked.value
    if not maskable or masked == NO_RUN:
        return SharedOptions.variants.value
    mask_variant = maskable.get(masked) or next(iter(maskable.values()))
    return (
        *SharedOptions.variants.value,
        MaskedFullAttention(mask_variant.variant, mask_variant.params, TimingOptions.form.value),
    )


def _maskable() -> dict[str, ac.Attention]:
    """Return the chosen variants whose mask is known in advance, by key; empty if a decode step is timed."""
    if TimingOptions.mode.value == "decode":
        return {}
    return {a.key: a for a in SharedOptions.variants.value if a.variant.mask is not None}


def _show_masked() -> None:
    """Draw the choice of the variant whose mask is applied to the full matrix."""
    if maskable := _maskable():
        options = [*maskable, NO_RUN]
        TimingOptions.masked.draw_with_options(
            options,
            options[0],
            key="timing.masked",
            format_func=lambda key: label(maskable[key]) if key in maskable else _("none"),
        )
