"""What the visitor asks of the Timing page: its state in links, and its controls."""

import streamlit as st

from app import chart, share
from app.share import Field
from app.text import _
from attention_core.limits import current
from attention_core.measure.device import devices
from attention_core.measure.timing import DTYPES, MODES, SIZES, TimingSpec

SHORTEST = 16
MOST_ROUNDS = 25
"""Rounds a visitor may ask for: quartiles move little after these."""


def use_link() -> None:
    """What a link to this page carries beside the variants."""
    limits = current()
    share.use(
        {
            "t_mode": share.choice(*MODES),
            "t_device": share.choice("cpu", "cuda"),
            "t_dtype": share.choice(*DTYPES),
            "t_from": _one_of(SIZES[0]),
            "t_to": _one_of(min(SIZES[-1], limits.timed_tokens)),
            "t_heads": share.whole(8, 1, limits.heads),
            "t_d": share.whole(64, 2, limits.head_size),
            "t_rounds": share.whole(5, 1, MOST_ROUNDS),
            "t_side": share.choice("ratio", "memory", "work"),
            "t_beside": Field("", lambda given: given[-1][:64]),
        }
    )
    if st.session_state["t_device"] not in devices():
        st.session_state["t_device"] = "cpu"
        st.info(_("This machine has no CUDA device that torch sees; the CPU is timed instead."))


def modes() -> dict[str, str]:
    """The modes' names on screen."""
    return {"forward": _("Forward"), "backward": _("Forward + backward"), "decode": _("One decode step")}


def show() -> TimingSpec:
    """Draw the controls; what they ask for."""
    state = st.session_state
    _pick("t_mode", _("Measure"), modes())
    if len(devices()) > 1:
        _pick("t_device", _("On"), {"cpu": "CPU", "cuda": "CUDA"})
    with st.popover(_("Set-up"), icon=":material/tune:", type="tertiary"):
        _set_up()
    first, last = sorted((state["t_from"], state["t_to"]))
    return TimingSpec(
        variants=tuple(attention.word for attention in state["variants"]),
        sizes=tuple(n for n in _doublings() if first <= n <= last),
        mode=state["t_mode"],
        causal=state["causal"] and state["t_mode"] != "decode",
        device=state["t_device"],
        dtype=state["t_dtype"],
        heads=state["t_heads"],
        head_size=state["t_d"],
        rounds=state["t_rounds"],
    )


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
    chart.choose_format()
    st.caption(
        _("Queries, keys and values are Gaussian, the batch is 1: how long a variant takes hardly depends on them.")
    )


def _pick(key: str, title: str, names: dict[str, str]) -> None:
    st.segmented_control(title, list(names), key=key, format_func=names.__getitem__, required=True, width="content")


def _doublings() -> list[int]:
    return [2**i for i in range(SHORTEST.bit_length() - 1, current().timed_tokens.bit_length())]


def _one_of(default: int) -> Field:
    def read(given: list[str]) -> int:
        return _doublings()[_doublings().index(int(given[-1]))]  # one that is not there raises ValueError

    return Field(default, read)
