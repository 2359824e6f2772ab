"""What the visitor asks of the Timing page: its state in links, and its controls."""

import streamlit as st

import attention_core as ac
from app import chart, share
from app.naming import label
from app.text import _
from attention_core.limits import current
from attention_core.measure.device import devices
from attention_core.measure.masked import FORMS, Masked
from attention_core.measure.run_file import recorded
from attention_core.measure.timing import DTYPES, MODES, SIZES, TimingSpec

LOADED, NONE = "loaded", "none"
"""What may stand beside the live run, other than a recorded one: one from a file, or nothing, as for masks."""
SHORTEST = 16
MOST_ROUNDS = 25
"""Rounds a visitor may ask for: quartiles move little after these."""


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the variants."""
    limits = current()
    return {
        "t_mode": share.choice(*MODES),
        "t_device": share.choice("cpu", "cuda"),
        "t_dtype": share.choice(*DTYPES),
        "t_from": share.one_of(SIZES[0], _doublings()),
        "t_to": share.one_of(min(SIZES[-1], limits.timed_tokens), _doublings()),
        "t_heads": share.whole(8, 1, limits.heads),
        "t_d": share.whole(64, 2, limits.head_size),
        "t_rounds": share.whole(5, 1, MOST_ROUNDS),
        "t_side": share.choice("ratio", "memory", "work"),
        "t_masked": share.one_of(None, (NONE, *(v.key for v in ac.all_variants() if v.mask is not None))),
        "t_form": share.choice(*FORMS),
        "t_beside": share.one_of(None, (*recorded(), LOADED, NONE)),
    }


def modes() -> dict[str, str]:
    """The modes' names on screen."""
    return {"forward": _("Forward"), "backward": _("Forward + backward"), "decode": _("One decode step")}


def show() -> TimingSpec:
    """Draw the controls; what they ask for."""
    share.fit(t_device=devices())
    state = st.session_state
    _pick("t_mode", _("Measure"), modes())
    if len(devices()) > 1:
        _pick("t_device", _("On"), {"cpu": "CPU", "cuda": "CUDA"})
    with st.popover(_("Set-up"), icon=":material/tune:", type="tertiary"):
        _set_up()
    first, last = sorted((state["t_from"], state["t_to"]))
    return TimingSpec(
        variants=tuple(attention.word for attention in subjects()),
        sizes=tuple(n for n in _doublings() if first <= n <= last),
        mode=state["t_mode"],
        causal=state["causal"] and state["t_mode"] != "decode",
        device=state["t_device"],
        dtype=state["t_dtype"],
        heads=state["t_heads"],
        head_size=state["t_d"],
        rounds=state["t_rounds"],
    )


def subjects() -> tuple[ac.Attention, ...]:
    """What is timed: the chosen variants, and one of their masks on the full matrix."""
    state = st.session_state
    able = _maskable()
    if not able or state["t_masked"] == NONE:
        return tuple(state["variants"])
    laid = able.get(state["t_masked"]) or next(iter(able.values()))
    return (*state["variants"], Masked(laid.variant, laid.params, state["t_form"]))


def _maskable() -> dict[str, ac.Attention]:
    """The chosen variants whose mask is known in advance, by key; none where a decode step is timed."""
    state = st.session_state
    if state["t_mode"] == "decode":
        return {}
    return {a.key: a for a in state["variants"] if a.variant.mask is not None}


def show_masked() -> None:
    """Whose mask is laid on the full matrix."""
    able = _maskable()
    if not able:
        return
    options = [*able, NONE]
    st.selectbox(
        _("Mask on the full matrix (dotted)"),
        options,
        format_func=lambda key: label(able[key]) if key in able else _("none"),
        width=250,
        help=_("Every pair is computed and the pattern only hides some: beside it, what the pattern's own way saves."),
        **share.mirror("t_masked", options, options[0], key="timing.masked"),
    )


def forms() -> dict[str, str]:
    """How a mask is laid on the full matrix."""
    return {"fused": _("torch's fused kernel"), "explicit": _("explicit n × n scores")}


def show_side(names: dict[str, str]) -> None:
    """What stands beside the time."""
    _pick("t_side", _("Beside the time"), names)


def _set_up() -> None:
    limits = current()
    left, right = st.columns(2)
    left.selectbox(_("From tokens"), _doublings(), key="t_from")
    right.selectbox(_("To tokens, doubling"), _doublings(), key="t_to")
    left.number_input(_("Heads"), 1, limits.heads, key="t_heads")
    right.number_input(_("Head size d"), 2, limits.head_size, key="t_d")
    st.slider(_("Rounds"), 1, MOST_ROUNDS, key="t_rounds", help=_("Samples of each variant at each length."))
    _pick("t_dtype", _("Numbers"), {name: name for name in DTYPES})
    _pick("t_form", _("A mask is laid on"), forms())
    chart.choose_format()
    st.caption(
        _("Queries, keys and values are Gaussian, the batch is 1: how long a variant takes hardly depends on them.")
    )


def _pick(key: str, title: str, names: dict[str, str]) -> None:
    st.segmented_control(title, list(names), key=key, format_func=names.__getitem__, required=True, width="content")


def _doublings() -> list[int]:
    return [2**i for i in range(SHORTEST.bit_length() - 1, current().timed_tokens.bit_length())]
