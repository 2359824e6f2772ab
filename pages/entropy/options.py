"""The options and controls of the Entropy page, and the measurement that they describe."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

import attention_core as ac
from app.figures.spread import spread
from app.state import presets
from app.state.controls import Options, choice, listed_whole, selection, several, stops, switch, whole
from app.state.session import REFERENCE, SharedOptions
from app.ui import chart
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_popover
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n
from attention_core.experiments.entropy_length import EntropyTask
from attention_core.experiments.homogeneity import FACTORS
from attention_core.experiments.lengths import SHORTEST, ladder
from attention_core.experiments.normalizer_length import NormalizerTask
from attention_core.experiments.task import H, S
from attention_core.formatting import between
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.limits import current

HEIGHT = 362
"""Height of a chart in pixels; with the sentence above, the chart fits a projector's screen."""
LONGEST = 2048
"""Default longest length in tokens; eight variants on the default synthetic input take about 12 s on one core."""
SHORT = 256
"""Tokens below which a text shows little growth, so that the page offers a longer one."""
BASES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
TEMPERATURES = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)
SEEDS = 8
"""Maximum seeds: quartiles of more heads differ little."""


def lengths() -> list[int]:
    """Return the choices of the longest length."""
    return [2**i for i in range(7, current().sweep_tokens.bit_length())]


class EntropyOptions(Options, prefix="h_"):
    """The options that a link to this page carries in addition to the input and the variants."""

    view = choice(
        {
            "entropy": N_("Entropy H"),
            "normalizer": N_("Normaliser Z"),
            "drift": N_("Other lengths"),
            "distance": N_("Distance and RoPE"),
            "factor": N_("Logits × λ"),
        },
        N_("View"),
        layout={"label_visibility": "collapsed"},
    )
    measure = choice(
        {"entropy": "H", "normalised": "H / log n", "sparsity": "S"},
        N_("Measure"),
        help=N_("H: entropy. S = E|a| / √E a²: 1 where all keys weigh alike, 1/√n where one of n has all."),
    )
    scales = several(("log_n", "temperature", "unscaled"), ["log_n"], N_("Softmax scales beside 1/√d"))
    base = stops(BASES, 512, "n₀", help=N_("The length at which the log n scale equals 1/√d."))
    temperature = stops(TEMPERATURES, 2.0, N_("Temperature"), form="{:g}", help=N_("Divides the logits."))
    drift = choice({"total": N_("row total"), "size": N_("output size")}, N_("Measure"))
    trained = listed_whole(
        SHORTEST,
        1,
        lambda: current().sweep_tokens,
        N_("Trained at n₀"),
        layout={"width": 120},
        help=N_("The length whose rows and outputs count as 1: a model trained there has learned any factor away."),
    )
    distance = choice(
        {
            "weight": N_("weight"),
            "logit": N_("logit"),
            "bound": N_("its size and bound"),
            "alone": N_("what RoPE alone does"),
        },
        N_("Over distance"),
    )
    factor = stops(
        FACTORS,
        4.0,
        N_("λ: every logit is multiplied by"),
        form="{:g}",
        help=N_("λ is the inverse of a temperature: above 1 sharpens, below 1 flattens."),
    )
    longest = selection(
        lambda: {n: str(n) for n in lengths()},
        N_("Longest n"),
        default=LONGEST,
        layout={"width": 120},
        help=N_("The work grows with n²; a sweep can be stopped and keeps what it has."),
    )
    seeds = whole(2, 1, SEEDS, N_("Seeds"), layout={"width": 110})
    heads = choice({"all": N_("all of the layer"), "one": N_("the one picked on the left")}, N_("Heads"))
    line = choice({"median": N_("median"), "mean": N_("mean")}, N_("Line"))
    band = switch(True, N_("Band"), help=N_("From the lower to the upper quartile over heads and seeds."))
    unit = choice({"nats": N_("nats"), "bits": N_("bits")}, N_("Entropy in"))


@dataclass(frozen=True, kw_only=True)
class Question:
    """The measurement that the options describe on one input.

    Attributes:
        source: source of queries and keys.
        record: the source's record at its own length.
        head: index of the only head shown; None for all heads.
        causal: whether a causal mask is used.
        room: maximum number of tokens at which the source can be measured.
        longest: tokens of the longest length.
        seeds: number of seeds of a synthetic source.
        options: the page's options.
    """

    source: Source
    record: QKV
    head: int | None
    causal: bool
    room: int
    longest: int
    seeds: int
    options: EntropyOptions

    @property
    def per_nat(self) -> float:
        """Number of the chosen entropy units in one nat."""
        return 1.0 if self.options.unit == "nats" else 1 / math.log(2)

    @property
    def unit(self) -> str:
        """Name on screen of the unit of entropies."""
        return _(self.options.unit)

    @property
    def mean(self) -> bool:
        """True if lines show means, False if they show medians."""
        return self.options.line == "mean"

    def scope(self, *, tokens: int, shortest: int | None = None, seeds: int = 1, variants: Iterable[str]) -> Scope:
        """Return the scope of a view's numbers.

        Args:
            tokens: largest number of tokens measured.
            shortest: smallest number of tokens, if several lengths are measured.
            seeds: number of sequences drawn.
            variants: words of the variants measured.
        """
        return Scope(
            head=self.head,
            heads=self.record.heads,
            aggregation="mean" if self.mean else "median",
            seeds=seeds,
            n=self.record.n,
            tokens=tokens,
            shortest=shortest,
            variants=tuple(variants),
        )

    def scope_of_sweep(self, variants: Iterable[str]) -> Scope:
        """Return the scope of a view that measures every length up to the longest."""
        lengths = ladder(self.longest)
        return self.scope(tokens=lengths[-1], shortest=lengths[0], seeds=self.seeds, variants=variants)

    def of_heads(self, rows: Iterable[H]) -> list[H]:
        """Return the rows of the chosen heads."""
        return [row for row in rows if self.head is None or row.head == self.head]


def opening() -> dict[str, Any]:
    """Return the first text (long preset) and variant (softmax; log n scale and uniform attention are drawn too)."""
    return {"text": presets.texts()["long"], "variants": (ac.get(REFERENCE),)}


def question(chosen: ChosenInput, options: EntropyOptions, *, causal: bool) -> Question:
    """Return the measurement that the options describe for an input."""
    room = chosen.source.room(chosen.qkv)
    return Question(
        source=chosen.source,
        record=chosen.qkv,
        head=chosen.head if options.heads == "one" else None,
        causal=causal,
        room=room,
        longest=min(options.longest, room),
        seeds=options.seeds if chosen.source.made else 1,
        options=options,
    )


def show_display() -> None:
    """Draw the form with the display options."""

    def draw() -> None:
        EntropyOptions.unit.draw()
        EntropyOptions.heads.draw()
        EntropyOptions.line.draw()
        EntropyOptions.band.draw()
        chart.choose_format()

    lazy_popover(_("Display"), draw, key="entropy.display", icon=":material/tune:", type="tertiary")


def show_scales(options: EntropyOptions) -> None:
    """Draw the choice of further scales of softmax's logits, and the form with their parameters."""
    names = {
        "log_n": _("log n (n₀ = {base})", base=options.base),
        "temperature": _("temperature {t:g}", t=options.temperature),
        "unscaled": _("no scale"),
    }
    EntropyOptions.scales.draw(format_func=names.__getitem__)

    def draw() -> None:
        EntropyOptions.base.draw()
        EntropyOptions.temperature.draw()

    lazy_popover(_("n₀ and T"), draw, key="entropy.scales", icon=":material/tune:", type="tertiary")


def effort(task: EntropyTask | NormalizerTask) -> float:
    """Return the relative work of a task: its number of token pairs plus a constant part."""
    return task.n**2 + 10_000


def show_extent(question: Question) -> None:
    """Draw the choice of the longest length and, for a synthetic source, of the seeds."""
    room, known = question.room, lengths()
    if room > known[0]:
        last = max(question.options.longest, next(n for n in known if n >= room))
        EntropyOptions.longest.draw(
            options=[*(n for n in known if n < room), last],
            format_func=lambda n: _("{n} (all)", n=room) if n >= room else str(n),
        )
    if question.source.made:
        EntropyOptions.seeds.draw()


def hint(room: int, *, written: bool) -> str:
    """Return the message that a written text ends early; empty for other sources and longer texts."""
    if room >= SHORT or not written:
        return ""
    return _n("This text ends at {n} token. To see further:", "This text ends at {n} tokens. To see further:", n=room)


def show_hint(question: Question) -> None:
    """Draw the message that a text ends early, with buttons that take a longer input."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if label_text := hint(question.room, written=question.source.written):
            st.caption(label_text, width="content")
            st.button(
                _("a longer text"),
                type="tertiary",
                icon=":material/notes:",
                on_click=SharedOptions.text.set,
                args=(presets.texts()["long"],),
            )
            st.button(
                _("a synthetic sequence"),
                type="tertiary",
                icon=":material/ssid_chart:",
                on_click=SharedOptions.input.set,
                args=("synthetic",),
            )


def by_head(rows: Iterable[S]) -> list[list[S]]:
    """Group rows by head and seed."""
    groups: dict[tuple[int, int | None], list[S]] = {}
    for row in rows:
        groups.setdefault((row.head, row.seed), []).append(row)
    return list(groups.values())


def quartiles(values: Sequence[float]) -> str | None:
    """Return the lower and upper quartiles of some numbers, in words; None if there are no numbers."""
    if not values:
        return None
    found = spread((0.0, value) for value in values)
    return between(found.low[0], found.high[0], ".2f")
