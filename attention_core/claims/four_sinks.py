"""Four sinks suffice for a window: with the first four tokens kept, a model reads nearly as with all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core.claims.claim import Ask, Claim, Figure, Numbers, Place, Quantity, Verdict
from attention_core.claims.in_the_model import TOKENS, lost, reading
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.variant import SOFTMAX, Paper

WINDOW = 32
"""Tokens that a query may look back, far fewer than are read."""
SINKS = (0, 1, 2, 4, 8)
SUFFICE, MORE = 4, 8
WHOLE, WINDOWED = "as it is", "window and sinks"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow:
    """The text read with a window in all layers and so many sinks, or as the model is: ``WINDOWED`` or ``WHOLE``."""

    reader: str
    sinks: int
    tokens: int
    perplexity: float
    lost: float


def measure(ask: Ask) -> Iterator[SinkRow]:
    """The text's perplexity and what is lost of copying, for each number of sinks."""
    layers = tuple(range(models.layer_count(swap.MODEL)))
    for sinks in SINKS:
        word = f"sink~window~{WINDOW}~sinks~{sinks}" if sinks else f"local~window~{WINDOW}"
        for reader, own, where in ((WINDOWED, word, layers), (WHOLE, SOFTMAX, ())):
            read = reading(ask, own, where)
            yield SinkRow(
                reader=reader, sinks=sinks, tokens=read.tokens, perplexity=read.perplexity, lost=lost(ask, own, where)
            )


def numbers(rows: Sequence[SinkRow]) -> Numbers:
    """Perplexities with no sink, with four and with eight, over that of the model as it is."""
    whole = next(row.perplexity for row in rows if row.reader == WHOLE)
    own = {row.sinks: row for row in rows if row.reader == WINDOWED}
    return {
        "window": own[0].perplexity / whole,
        "four": own[SUFFICE].perplexity / whole,
        "more": own[MORE].perplexity / own[SUFFICE].perplexity,
        "lost": own[SUFFICE].lost,
        TOKENS.name: rows[0].tokens,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """By whether the window alone fails, four sinks mend that, and more of them add nothing."""
    if numbers["window"] < bounds["fails"]:
        return Verdict.FAILS
    return Verdict.of_parts(numbers["four"] <= bounds["near"], numbers["more"] >= 1 / bounds["little"])


CLAIM = Claim(
    key="four_sinks",
    number=28,
    statement="A language model that sees only a window of its text falls apart; with the first four tokens kept as "
    "sinks it reads nearly as well as with all of them, and more sinks add nothing.",
    source=Paper("Efficient Streaming Language Models with Attention Sinks", 2023, "https://arxiv.org/abs/2309.17453"),
    place=Place("model", {"m_view": "budget"}),
    experiment="SmolLM2-135M, in all of whose layers a window of 32 tokens with 0, 1, 2, 4 or 8 sinks stands in "
    "softmax's place, untrained, reads the first 128 tokens of the text, and 48 random tokens said twice.",
    rule="Does not hold where the window alone multiplies perplexity by less than {fails}. Otherwise holds where with "
    "four sinks it is at most {near} times what it is without a window, and eight sinks lower it by no more than a "
    "factor of {little}; partly where one of the two is so.",
    bounds={"fails": 1.5, "near": 1.1, "little": 1.05},
    finding="On {tokens} tokens a window alone multiplies perplexity by {window}, with four sinks by {four}; eight "
    "sinks bring it to {more} times that. Of what copying saves {lost} % is lost with four.",
    quantities=(
        Quantity("four", "perplexity with four sinks, over that as it is"),
        Quantity("window", "perplexity with the window alone, over that as it is"),
        Quantity("more", "perplexity with eight sinks, over that with four"),
        Quantity("lost", "of copying lost with four sinks", "%"),
        TOKENS,
    ),
    figure=Figure(x="sinks", y="perplexity", by="reader", x_title="sinks", y_title="perplexity", log_y=True),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=2 * WINDOW,
    reads=True,
)
