"""What the visitor asks of the Entropy page: its options, its controls, and the question they amount to."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

import attention_core as ac
from app.figures.spread import spread
from app.state import presets
from app.state.controls import Options, choice, listed_whole, selection, several, stops, switch, whole
from app.state.session import REFERENCE, Visit
from app.ui import chart
from app.ui.input_panel import Chosen
from app.ui.lazy import form
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
"""Pixels of a chart: with the sentence above it, it fits a projector's screen."""
LONGEST = 2048
"""Tokens of the longest length at first: eight variants on the default synthetic input take some 12 s on one core."""
SHORT = 256
"""Tokens below which a text tells little of growth, so that a longer one is offered."""
BASES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
TEMPERATURES = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)
SEEDS = 8
"""Most seeds: quartiles of more heads than these look alike."""


def lengths() -> list[int]:
    """The longest lengths to choose from."""
    return [2**i for i in range(7, current().sweep_tokens.bit_length())]


class EntropyOptions(Options, prefix="h_"):
    """What a link to this page carries beside the input and the variants."""

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
    """What the page is asked, of one input.

    Attributes:
        source: where queries and keys come from.
        record: the source's record at its own length.
        head: the one head looked at, None for all.
        causal: whether the future is hidden.
        room: tokens the source can be measured at, at most.
        longest: tokens of the longest length.
        seeds: seeds of a synthetic source.
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
        """The unit's number of one nat."""
        return 1.0 if self.options.unit == "nats" else 1 / math.log(2)

    @property
    def unit(self) -> str:
        """The unit of entropies, on screen."""
        return _(self.options.unit)

    @property
    def mean(self) -> bool:
        """Whether lines are means rather than medians."""
        return self.options.line == "mean"

    def scope(self, *, tokens: int, shortest: int | None = None, seeds: int = 1, variants: Iterable[str]) -> Scope:
        """What a view's numbers come from.

        Args:
            tokens: the most tokens that it measures.
            shortest: the fewest, where it measures several lengths.
            seeds: sequences that it draws.
            variants: words of what it measures.
        """
        return Scope(
            head=self.head,
            heads=self.record.heads,
            joined="mean" if self.mean else "median",
            seeds=seeds,
            n=self.record.n,
            tokens=tokens,
            shortest=shortest,
            variants=tuple(variants),
        )

    def scope_of_sweep(self, variants: Iterable[str]) -> Scope:
        """The same of a view that measures every length up to the longest."""
        lengths = ladder(self.longest)
        return self.scope(tokens=lengths[-1], shortest=lengths[0], seeds=self.seeds, variants=variants)

    def of_heads(self, rows: Iterable[H]) -> list[H]:
        """The rows of the heads looked at."""
        return [row for row in rows if self.head is None or row.head == self.head]


def opening() -> dict[str, Any]:
    """A long text and softmax alone, beside which stand the log n scale and uniform attention."""
    return {"text": presets.texts()["long"], "variants": (ac.get(REFERENCE),)}


def question(chosen: Chosen, options: EntropyOptions, *, causal: bool) -> Question:
    """What options come to on an input."""
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
    """How things are drawn, and over what."""

    def draw() -> None:
        EntropyOptions.unit.draw()
        EntropyOptions.heads.draw()
        EntropyOptions.line.draw()
        EntropyOptions.band.draw()
        chart.choose_format()

    form(_("Display"), draw, key="entropy.display", icon=":material/tune:", type="tertiary")


def show_scales(options: EntropyOptions) -> None:
    """Which further scales of softmax's logits are drawn beside it."""
    names = {
        "log_n": _("log n (n₀ = {base})", base=options.base),
        "temperature": _("temperature {t:g}", t=options.temperature),
        "unscaled": _("no scale"),
    }
    EntropyOptions.scales.draw(format_func=names.__getitem__)

    def draw() -> None:
        EntropyOptions.base.draw()
        EntropyOptions.temperature.draw()

    form(_("n₀ and T"), draw, key="entropy.scales", icon=":material/tune:", type="tertiary")


def effort(task: EntropyTask | NormalizerTask) -> float:
    """A task's work beside the others': pairs of tokens, and what every task costs before the first."""
    return task.n**2 + 10_000


def show_extent(question: Question) -> None:
    """How far the sweep goes."""
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
    """Where a written text ends, if that is early; else nothing."""
    if room >= SHORT or not written:
        return ""
    return _n("This text ends at {n} token. To see further:", "This text ends at {n} tokens. To see further:", n=room)


def show_hint(question: Question) -> None:
    """Where a text ends early: what gives a longer one."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if told := hint(question.room, written=question.source.written):
            st.caption(told, width="content")
            st.button(
                _("a longer text"),
                type="tertiary",
                icon=":material/notes:",
                on_click=Visit.text.set,
                args=(presets.texts()["long"],),
            )
            st.button(
                _("a synthetic sequence"),
                type="tertiary",
                icon=":material/ssid_chart:",
                on_click=Visit.input.set,
                args=("synthetic",),
            )


def by_head(rows: Iterable[S]) -> list[list[S]]:
    """Rows head by head and seed by seed."""
    groups: dict[tuple[int, int | None], list[S]] = {}
    for row in rows:
        groups.setdefault((row.head, row.seed), []).append(row)
    return list(groups.values())


def quartiles(values: Sequence[float]) -> str | None:
    """The lower and the upper quartile of some numbers, in words."""
    if not values:
        return None
    found = spread((0.0, value) for value in values)
    return between(found.low[0], found.high[0], ".2f")
