"""Claim: replacing one middle layer shows little: even attention that ignores the keys does little harm there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core.claims.claim import Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.claims.model_experiments import TOKENS, copy_loss_percent, reading
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.model_patching import UNIFORM, from_word
from attention_core.variant import SOFTMAX, Paper

WORDS = ("local~window~32", "linear", "synthesizer~kind~random", UNIFORM)
"""The replacements for softmax; the last two ignore queries and keys."""
ONE, ALL = "the middle layer alone", "all layers"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """The perplexity and the loss of copying with a variant in one layer or in all layers.

    Attributes:
        variant: its title.
        where: ``ONE`` or ``ALL``.
        tokens: tokens of the text.
        times: the perplexity divided by the unchanged model's perplexity.
        lost: per cent of the loss saved by copying that is lost.
    """

    variant: str
    where: str
    tokens: int
    times: float
    lost: float


def measure(inputs: ExperimentInput) -> Iterator[LayerRow]:
    """Yield the perplexity and the loss of copying with each variant in the middle layer and in all layers."""
    count = models.layer_count(swap.MODEL)
    whole = reading(inputs, SOFTMAX, ())
    for word in WORDS:
        for where, layers in ((ONE, (count // 2,)), (ALL, tuple(range(count)))):
            yield LayerRow(
                variant=from_word(word).title,
                where=where,
                tokens=whole.tokens,
                times=reading(inputs, word, layers).perplexity / whole.perplexity,
                lost=copy_loss_percent(inputs, word, layers),
            )


def numbers(rows: Sequence[LayerRow]) -> Numbers:
    """Return the worst results with one layer replaced, and the range of perplexity ratios with all replaced."""
    one, every = ([row for row in rows if row.where == where] for where in (ONE, ALL))
    return {
        "worst": max(row.times for row in one),
        "lost": max(row.lost for row in one),
        "floor": max(row.times for row in every),
        "best": min(row.times for row in every),
        TOKENS.name: rows[0].tokens,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the worst perplexity and the worst loss of copying with one layer replaced."""
    return Verdict.of_parts(numbers["worst"] <= bounds["times"], numbers["lost"] <= bounds["lost"])


CLAIM = Claim(
    key="one_layer",
    number=29,
    statement="That one middle layer can be replaced says little of what replaces it: attention there hardly matters, "
    "and even what looks at nothing does no harm.",
    source=Paper("What Matters in Transformers? Not All Attention is Needed", 2024, "https://arxiv.org/abs/2406.15786"),
    place=Place("model", {"m_view": "layers", "m_edge": "single"}),
    experiment="In SmolLM2-135M a window of 32, linear attention, random weights and the mean of the values stand in "
    "softmax's place, untrained, in layer 15 of 0 to 29 alone and in all layers; it reads the first 128 tokens of "
    "the text, and 48 of these tokens in a random order, twice in a row.",
    rule="Holds where in the middle layer none of them multiplies perplexity by more than {times}, nor loses more than "
    "{lost}% of what copying saves; partly where one of the two is so.",
    bounds={"times": 1.1, "lost": 10},
    finding="On {tokens} of SmolLM2's tokens the worst of them multiplies perplexity by {worst} in the middle layer "
    "and loses at most {lost}% of copying; in all layers the best multiplies it by {best}, the worst by {floor}.",
    quantities=(
        Quantity("worst", "perplexity, the worst in one layer, over that as it is"),
        Quantity("lost", "of copying, the most lost in one layer", "%"),
        Quantity("best", "perplexity, the best in all layers, over that as it is"),
        Quantity("floor", "perplexity, the worst in all layers, over that as it is"),
        TOKENS,
    ),
    figure=Figure(
        x="variant",
        y="times",
        by="where",
        x_title="in softmax's place",
        y_title="perplexity, over that as it is",
        kind="bars",
        log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=64,
    uses_decoder=True,
)
