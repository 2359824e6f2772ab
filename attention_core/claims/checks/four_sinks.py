"""Claim: with four sinks, a window reads as well as a model that rereads the window for every token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core.claims.claim import Case, Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.claims.model_experiments import TOKENS, copy_loss_percent, reading, reread
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.variant import SOFTMAX, Paper

WINDOW = 32
"""Width of the window in tokens, much shorter than the text."""
SINKS = (0, 1, 2, 4, 8)
SUFFICE, MORE = 4, 8
WHOLE, WINDOWED, REREAD = "unchanged", "window and sinks", "window read again"
KEYS = SUFFICE + WINDOW
"""Tokens that the control rereads for each prediction: as many as a query attends to with four sinks."""
LIMIT = 5
"""Largest reduction of perplexity by eight sinks compared with four, in per cent, that counts as no improvement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow:
    """The perplexity and the loss of copying for one way to read the text.

    Attributes:
        reader: ``WHOLE``, ``REREAD``, or ``WINDOWED`` for a window in all layers.
        sinks: number of sinks of the windowed reader. The other readers are repeated for each number.
        tokens: tokens of the text.
        perplexity: perplexity of the text.
        lost: per cent of the loss saved by copying that is lost; None for the reread control, which does not copy.
    """

    reader: str
    sinks: int
    tokens: int
    perplexity: float
    lost: float | None


def measure(inputs: ExperimentInput) -> Iterator[SinkRow]:
    """Yield the text's perplexity and the loss of copying for each number of sinks, and the two baselines."""
    layers = tuple(range(models.layer_count(swap.MODEL)))
    control = reread(inputs, KEYS)
    for sinks in SINKS:
        word = f"sink~window~{WINDOW}~sinks~{sinks}"
        for reader, own, where in ((WINDOWED, word, layers), (WHOLE, SOFTMAX, ())):
            read = reading(inputs, own, where)
            yield SinkRow(
                reader=reader,
                sinks=sinks,
                tokens=read.tokens,
                perplexity=read.perplexity,
                lost=copy_loss_percent(inputs, own, where),
            )
        yield SinkRow(reader=REREAD, sinks=sinks, tokens=read.tokens, perplexity=control, lost=None)


def numbers(rows: Sequence[SinkRow]) -> Numbers:
    """Return the perplexities with no sink and with four sinks relative to the control, and the gain by eight sinks."""
    control, whole = (next(row.perplexity for row in rows if row.reader == reader) for reader in (REREAD, WHOLE))
    own = {row.sinks: row for row in rows if row.reader == WINDOWED}
    gain = 100 * (1 - own[MORE].perplexity / own[SUFFICE].perplexity)
    return {
        "window": own[0].perplexity / control,
        "four": own[SUFFICE].perplexity / control,
        "gain": gain,
        "margin": abs(LIMIT - gain),
        "whole": own[SUFFICE].perplexity / whole,
        "lost": own[SUFFICE].lost or 0.0,
        TOKENS.name: rows[0].tokens,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge whether the window alone fails, four sinks read like the control, and more sinks add nothing."""
    if numbers["window"] < bounds["fails"]:
        return Verdict.FAILS
    return Verdict.of_parts(numbers["four"] <= bounds["near"], numbers["gain"] <= bounds["little"])


CLAIM = Claim(
    key="four_sinks",
    number=28,
    statement="A language model that sees only a window of its text falls apart; with the first four tokens kept as "
    "sinks it reads as well as if the window were read again for each token, and more sinks add nothing.",
    source=Paper("Efficient Streaming Language Models with Attention Sinks", 2023, "https://arxiv.org/abs/2309.17453"),
    place=Place("model", {"m_view": "budget"}),
    experiment="SmolLM2-135M, untrained, reads the first 128 tokens of the text with a window of 32 tokens and 0, 1, "
    "2, 4 or 8 sinks in softmax's place in all layers. The control is the paper's: the unchanged model reads the last "
    "36 tokens (32 and four) again for every token it predicts, and so has equally little context. Copying is tested "
    "with 48 of these tokens in a random order, twice in a row.",
    rule="Does not hold where the window alone has less than {fails}× the control's perplexity. Otherwise holds "
    "where four sinks have at most {near}× the control's perplexity, and eight sinks lower the perplexity of four "
    "by at most {little}%; partly where only one of the two is true.",
    bounds={"fails": 1.5, "near": 1.1, "little": LIMIT},
    finding="On {tokens} of SmolLM2's tokens a window alone has {window}× the perplexity of the window "
    "read again for each token, and four sinks {four}× (against all tokens: {whole}×). Eight sinks lower "
    "that perplexity by {gain}%, {margin} percentage points below the limit. With four sinks {lost}% of what "
    "copying saves is lost.",
    cases=(
        Case(
            finding="On {tokens} of SmolLM2's tokens a window alone has {window}× the perplexity of the window "
            "read again for each token, and four sinks {four}× (against all tokens: {whole}×). Eight "
            "sinks lower that perplexity by {gain}%, {margin} percentage points above the limit. With four sinks "
            "{lost}% of what copying saves is lost.",
            applies=lambda numbers: numbers["gain"] > LIMIT,
        ),
        Case(
            finding="On {tokens} of SmolLM2's tokens a window alone has {window}× the perplexity of the window "
            "read again for each token, and four sinks {four}× (against all tokens: {whole}×). Eight "
            "sinks do not lower that perplexity. With four sinks {lost}% of what copying saves is lost.",
            applies=lambda numbers: numbers["gain"] <= 0,
        ),
    ),
    quantities=(
        Quantity("four", "perplexity with four sinks, over the control's"),
        Quantity("window", "perplexity with the window alone, over the control's"),
        Quantity("whole", "perplexity with four sinks, over that with all tokens"),
        Quantity("gain", "reduction of perplexity by eight sinks", "%"),
        Quantity("margin", "distance of that reduction from the limit", "percentage points"),
        Quantity("lost", "loss of copying with four sinks", "%"),
        TOKENS,
    ),
    figure=Figure(x="sinks", y="perplexity", by="reader", x_title="sinks", y_title="perplexity", log_y=True),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=2 * WINDOW,
    uses_decoder=True,
)
