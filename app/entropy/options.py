"""What the visitor asks of the Entropy page: its state in links, its controls, and the question they amount to."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import chart, presets, share
from app.figures.spread import spread
from app.input_panel import Chosen
from app.text import _
from attention_core.experiments.entropy_length import EntropyTask
from attention_core.experiments.homogeneity import FACTORS
from attention_core.experiments.lengths import SHORTEST, reach
from attention_core.experiments.normalizer_length import NormalizerTask
from attention_core.experiments.task import Row
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, SyntheticSource, TextSource
from attention_core.limits import current

LONGEST = 2048
"""Tokens of the longest length at first: eight variants on the default synthetic input take some 12 s on one core."""
SHORT = 256
"""Tokens below which a text tells little of growth, so that a longer one is offered."""
BASES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
TEMPERATURES = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)
SCALES = ("log_n", "temperature", "unscaled")
SEEDS = 8
"""Most seeds: quartiles of more heads than these look alike."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The page's question.

    Attributes:
        source: where queries and keys come from.
        record: the source's record at its own length.
        head: the one head looked at, None for all.
        causal: whether the future is hidden.
        room: tokens the source can be measured at, at most.
        longest: tokens of the longest length.
        seeds: seeds of a synthetic source.
        mean: whether lines are means rather than medians.
        band: whether the quartiles are drawn.
        unit: ``"nats"`` or ``"bits"``.
    """

    source: Source
    record: QKV
    head: int | None
    causal: bool
    room: int
    longest: int
    seeds: int
    mean: bool
    band: bool
    unit: str

    @property
    def per_nat(self) -> float:
        """The unit's number of one nat."""
        return 1.0 if self.unit == "nats" else 1 / math.log(2)

    def of_heads(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the heads looked at."""
        return [row for row in rows if self.head is None or row["head"] == self.head]


def lengths() -> list[int]:
    """The longest lengths to choose from."""
    return [2**i for i in range(7, current().sweep_tokens.bit_length())]


def use_link() -> None:
    """What a link to this page carries beside the input and the variants."""
    share.use(
        {
            "h_view": share.choice("entropy", "normalizer", "drift", "distance", "factor"),
            "h_measure": share.choice("entropy", "normalised"),
            "h_scales": share.some_of(["log_n"], SCALES),
            "h_base": share.one_of(512, BASES),
            "h_temperature": share.one_of(2.0, TEMPERATURES),
            "h_drift": share.choice("total", "size"),
            "h_trained": share.whole(SHORTEST, 1, current().sweep_tokens),
            "h_distance": share.choice("weight", "logit", "bound", "alone"),
            "h_factor": share.one_of(4.0, FACTORS),
            "h_longest": share.one_of(LONGEST, lengths()),
            "h_seeds": share.whole(2, 1, SEEDS),
            "h_heads": share.choice("all", "one"),
            "h_line": share.choice("median", "mean"),
            "h_band": share.switch(True),
            "h_unit": share.choice("nats", "bits"),
        }
    )


def asked(chosen: Chosen) -> Asked:
    """The question as it stands."""
    state, room = st.session_state, reach(chosen.source, chosen.qkv)
    return Asked(
        source=chosen.source,
        record=chosen.qkv,
        head=chosen.head if state["h_heads"] == "one" else None,
        causal=state["causal"],
        room=room,
        longest=min(state["h_longest"], room),
        seeds=state["h_seeds"] if isinstance(chosen.source, SyntheticSource) else 1,
        mean=state["h_line"] == "mean",
        band=state["h_band"],
        unit=state["h_unit"],
    )


def show_display() -> None:
    """How things are drawn, and over what."""
    with st.popover(_("Display"), icon=":material/tune:", type="tertiary"):
        pick("h_unit", _("Entropy in"), {"nats": _("nats"), "bits": _("bits")})
        pick("h_heads", _("Heads"), {"all": _("all of the layer"), "one": _("the one picked on the left")})
        pick("h_line", _("Line"), {"median": _("median"), "mean": _("mean")})
        st.toggle(_("Band"), key="h_band", help=_("From the lower to the upper quartile over heads and seeds."))
        chart.choose_format()


def show_scales() -> None:
    """Which further scales of softmax's logits are drawn beside it."""
    state = st.session_state
    names = {
        "log_n": _("log n (n₀ = {base})", base=state["h_base"]),
        "temperature": _("temperature {t:g}", t=state["h_temperature"]),
        "unscaled": _("no scale"),
    }
    st.pills(
        _("Softmax scales beside 1/√d"),
        SCALES,
        key="h_scales",
        selection_mode="multi",
        format_func=names.__getitem__,
        width="content",
    )
    with st.popover(_("n₀ and T"), icon=":material/tune:", type="tertiary"):
        st.select_slider("n₀", BASES, key="h_base", help=_("The length at which the log n scale equals 1/√d."))
        st.select_slider(
            _("Temperature"),
            TEMPERATURES,
            key="h_temperature",
            format_func="{:g}".format,
            help=_("Divides the logits."),
        )


def effort(task: EntropyTask | NormalizerTask) -> float:
    """A task's work beside the others': pairs of tokens, and what every task costs before the first."""
    return task.n**2 + 10_000


def show_extent(question: Asked) -> None:
    """How far the sweep goes."""
    room, known = question.room, lengths()
    if room > known[0]:
        last = max(st.session_state["h_longest"], next(n for n in known if n >= room))
        st.selectbox(
            _("Longest n"),
            [*(n for n in known if n < room), last],
            key="h_longest",
            width=120,
            format_func=lambda n: _("{n} (all)", n=room) if n >= room else str(n),
            help=_("The work grows with n²; a sweep can be stopped and keeps what it has."),
        )
    if isinstance(question.source, SyntheticSource):
        st.number_input(_("Seeds"), 1, SEEDS, key="h_seeds", width=110)


def show_hint(question: Asked) -> None:
    """Where a text ends early: what gives a longer one."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if question.room < SHORT and isinstance(question.source, TextSource):
            st.caption(_("This text ends at {n} tokens. To see further:", n=question.room), width="content")
            st.button(_("a longer text"), type="tertiary", icon=":material/notes:", on_click=_read_long)
            st.button(_("a synthetic sequence"), type="tertiary", icon=":material/ssid_chart:", on_click=_make_long)


def _read_long() -> None:
    st.session_state["text"] = presets.texts()["long"]


def _make_long() -> None:
    st.session_state["input"] = "synthetic"


def pick(key: str, title: str, names: dict[str, str], **layout: Any) -> None:  # noqa: ANN401 - streamlit's own
    """One of a few, by name."""
    st.segmented_control(
        title, list(names), key=key, format_func=names.__getitem__, required=True, width="content", **layout
    )


def points(rows: Iterable[Row], measure: str, *, x: str = "n", **where: object) -> list[tuple[float, float]]:
    """``(x, measure)`` of the rows that have these values, where there is a number."""
    return [
        (float(at), value)
        for row in rows
        if all(row[name] == wanted for name, wanted in where.items())
        and isinstance(at := row[x], (int, float))
        and isinstance(value := row[measure], float)
    ]


def by_head(rows: Iterable[Row], **where: object) -> list[list[Row]]:
    """The rows that have these values, head by head and seed by seed."""
    groups: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        if all(row[name] == value for name, value in where.items()):
            groups.setdefault((row["head"], row["seed"]), []).append(row)
    return list(groups.values())


def quartiles(values: Sequence[float]) -> str | None:
    """The lower and the upper quartile of some numbers, in words."""
    if not values:
        return None
    found = spread((0.0, value) for value in values)
    return f"{found.low[0]:.2f} … {found.high[0]:.2f}"


def colours(*keys: str) -> list[int]:
    """The colour's place of variants by key: their own where they are among the chosen, else the next free ones."""
    chosen = [attention.key for attention in st.session_state["variants"]]
    others = [key for key in keys if key not in chosen]
    return [chosen.index(key) if key in chosen else len(chosen) + others.index(key) for key in keys]
