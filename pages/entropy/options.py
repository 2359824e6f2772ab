"""The options of the Entropy page, and the ``Measurement`` class: the options together with one input."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import attention_core as ac
from app.state import presets
from app.state.controls import Options, choice, integer, multiselect, selection, stops, switch
from app.state.session import REFERENCE, SharedOptions
from app.ui.input_panel import ChosenInput
from app.words.i18n import C_, N_, _
from attention_core.experiments.homogeneity import FACTORS
from attention_core.experiments.task import H
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source
from attention_core.limits import current

DEFAULT_LONGEST = 2048
"""Default longest length in tokens; eight variants on the default synthetic input take about 12 s on one core."""
BASES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
TEMPERATURES = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)
MAX_SEEDS = 8
"""Maximum seeds: quartiles of more heads differ little."""


def lengths() -> list[int]:
    """Return the choices of the longest length."""
    return [2**i for i in range(7, current().sweep_tokens.bit_length())]


class EntropyOptions(Options, prefix="h_"):
    """The options that a link to this page carries in addition to the input and the variants."""

    view = choice(
        {
            "entropy": N_("Spread by length"),
            "normalizer": N_("Row totals by length"),
            "distance": N_("RoPE by distance"),
            "factor": N_("Entropy by logit scale"),
        },
        N_("View"),
        layout={"label_visibility": "collapsed"},
    )
    measure = selection(
        {
            "keys": N_("Effective keys"),
            "share": N_("Share of all keys"),
            "entropy": N_("Entropy H"),
            "normalised": N_("Normalised H / log n"),
            "sparsity": N_("Evenness S"),
        },
        N_("Vertical axis"),
        default="entropy",
        opening="keys",
        layout={"width": 210},
        help=N_(
            "H is the entropy of a row of weights a. The evenness S is the mean of |a| divided by the root mean "
            "square of a. S is 1 if all n weights are equal, and 1/√n if only one weight is not zero."
        ),
    )
    scales = multiselect(
        ("log_n", "temperature", "unscaled"),
        ["log_n"],
        N_("Other softmax scalings"),
        help=N_("Softmax whose dot products q·k are multiplied by a factor other than the usual 1/√d."),
    )
    base = selection(
        {n: str(n) for n in BASES},
        N_("Reference length n₀"),
        default=512,
        opening=64,
        layout={"width": 185},
        help=N_("The number of tokens n₀ at which log n scaling does not change softmax."),
    )
    temperature = selection(
        {t: f"{t:g}" for t in TEMPERATURES},
        N_("Temperature T"),
        default=2.0,
        layout={"width": 150},
        help=N_("The temperature T, by which all logits are divided."),
    )
    distance = choice(
        {"weight": N_("Weight"), "logit": N_("Logit"), "bound": N_("|Logit| and bound"), "alone": N_("RoPE alone")},
        N_("Vertical axis"),
    )
    factor = stops(
        FACTORS,
        4.0,
        N_("Factor λ on every logit"),
        template="{:g}",
        help=N_("λ is an inverse temperature: a factor above 1 sharpens softmax, a factor below 1 flattens it."),
    )
    longest = selection(
        lambda: {n: str(n) for n in lengths()},
        N_("Longest length n"),
        default=DEFAULT_LONGEST,
        layout={"width": 150},
        help=N_("The computing time grows with n². If you stop the computation, the results so far are kept."),
    )
    seeds = integer(2, 1, MAX_SEEDS, N_("Seeds"), layout={"width": 110})
    heads = choice({"all": N_("All heads"), "one": N_("One head")}, C_("choice of heads", "Heads"))
    line = choice({"median": N_("Median"), "mean": N_("Mean")}, N_("Lines show"))
    band = switch(
        True, N_("Bands"), help=N_("A band extends from the lower to the upper quartile over heads and seeds.")
    )
    columns = switch(False, N_("All columns"))
    unit = choice({"nats": N_("Nats"), "bits": N_("Bits")}, N_("Entropy in"))


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measurement that the options describe on one input.

    Attributes:
        source: source of queries and keys.
        record: the queries, keys and values of the source at its own length.
        head: index of the only head shown; None for all heads.
        causal: whether a causal mask is used.
        max_tokens: maximum number of tokens at which the source can be measured.
        longest: tokens of the longest length.
        seeds: number of seeds of a synthetic source.
        options: the page's options.
    """

    source: Source
    record: QKV
    head: int | None
    causal: bool
    max_tokens: int
    longest: int
    seeds: int
    options: EntropyOptions

    @property
    def units_per_nat(self) -> float:
        """Number of the chosen entropy units in one nat."""
        return 1.0 if self.options.unit == "nats" else 1 / math.log(2)

    @property
    def unit(self) -> str:
        """Name on screen of the unit of entropies."""
        return _(N_("nats") if self.options.unit == "nats" else N_("bits"))

    @property
    def length_title(self) -> str:
        """Title of the axis of lengths."""
        return _("keys n") if self.record.crosses else _("tokens n")

    @property
    def uses_mean(self) -> bool:
        """True if lines show means, False if they show medians."""
        return self.options.line == "mean"

    def select_heads(self, rows: Sequence[H]) -> list[H]:
        """Return the rows of the chosen heads."""
        return [row for row in rows if self.head is None or row.head == self.head]


def opening() -> dict[str, Any]:
    """Return the options of a first visit: the long preset text, and softmax as the only chosen variant."""
    return {"text": presets.texts()["long"], "variants": (ac.get(REFERENCE),)}


def make_measurement(chosen: ChosenInput, options: EntropyOptions, *, causal: bool) -> Measurement:
    """Return the measurement that the options describe for an input."""
    max_tokens = chosen.source.max_tokens(chosen.qkv)
    return Measurement(
        source=chosen.source,
        record=chosen.qkv,
        head=chosen.head if options.heads == "one" else None,
        causal=causal,
        max_tokens=max_tokens,
        longest=min(options.longest, max_tokens),
        seeds=options.seeds if chosen.source.is_generated else 1,
        options=options,
    )


def show_heads() -> None:
    """Draw the choice between all heads of the layer and the chosen head."""
    head = SharedOptions.head.value
    names = {"all": _("All heads"), "one": _("Head {head}", head=head) if head >= 0 else _("Selected head")}
    EntropyOptions.heads.draw(format_func=names.__getitem__)
