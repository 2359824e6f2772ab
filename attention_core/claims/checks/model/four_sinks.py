"""Claim: with a window and the first four tokens (sinks), a model reads as well as one that rereads the window.

The model that it is compared with reads the window again from scratch for every token.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Case, Figure, Place, Quantity
from attention_core.claims.model_experiments import TOKENS, copy_loss_percent, reading, reread
from attention_core.claims.rule import Condition, Numbers, Rule, all_of, any_of
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.variant import SOFTMAX, Paper

WINDOW = 32
"""Width of the window in tokens, much shorter than the text."""
SINKS = (0, 1, 2, 4, 8)
SUFFICE, MORE = 4, 8
WHOLE, WINDOWED, REREAD = "unchanged model", "window and sinks", "rereading the last 36 tokens"
KEYS = SUFFICE + WINDOW
"""Tokens that the baseline rereads for each prediction: as many as a query attends to with four sinks."""
LIMIT = 5
"""Largest reduction of perplexity by eight sinks compared with four, in per cent, that counts as no improvement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow:
    """The perplexity and the lost gain from copying for one way to read the text.

    Attributes:
        reader: ``WHOLE``, ``REREAD``, or ``WINDOWED`` for a window in all layers.
        sinks: number of sinks of the windowed reader. The other readers are repeated for each number.
        tokens: tokens of the text.
        perplexity: perplexity of the text.
        lost: per cent of the gain from copying (a lower loss on repeated tokens) that is lost; None for ``REREAD``.
    """

    reader: str
    sinks: int
    tokens: int
    perplexity: float
    lost: float | None


def measure(inputs: ExperimentInput) -> Iterator[SinkRow]:
    """Yield the text's perplexity and the lost gain from copying for each number of sinks, and the two baselines."""
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


CLAIM = Claim(
    statement="A language model with a sliding window fails unless every query can also attend to the first four "
    "tokens (sinks), and more sinks add nothing.",
    short="a window needs exactly four sinks",
    source=Paper(
        "Efficient Streaming Language Models with Attention Sinks",
        2023,
        "https://arxiv.org/abs/2309.17453",
        authors="Xiao et al.",
    ),
    place=Place("model", {"m_view": "budget"}),
    experiment="SmolLM2-135M, without retraining, reads the first 128 tokens of the text. In all layers, each query "
    "attends only to a window of 32 tokens and to the first 0, 1, 2, 4 or 8 tokens, which are called sinks. These "
    "models are compared with rereading, as in the paper: the unchanged model reads the last 36 tokens (32 + 4) again "
    "for every prediction. Perplexity measures how badly a model predicts the next tokens. To test copying, 48 tokens "
    "of the text are shuffled once, and the model reads this sequence twice in a row. Only copying can predict the "
    "second half. The gain from copying is how much better the second half is predicted than the first.",
    measure=measure,
    numbers=numbers,
    rule="Rereading means that the unchanged model reads the last 36 tokens again for every prediction. Three "
    "conditions: (1) Without sinks, the window has at least {fails}× the perplexity of rereading. (2) With four sinks, "
    "it has at most {near}× the perplexity of rereading. (3) Eight sinks lower the perplexity by at most {little}% "
    "compared with four sinks. The claim holds if all three conditions are met. It holds partly if the first and one "
    "of the others are met.",
    bounds={"fails": 1.5, "near": 1.1, "little": LIMIT},
    verdict=Rule(
        requires=Condition("window", ">=", "fails"),
        holds=all_of(Condition("four", "<=", "near"), Condition("gain", "<=", "little")),
        partly=any_of(Condition("four", "<=", "near"), Condition("gain", "<=", "little")),
    ),
    finding="Trained models put spare weight on the first tokens, which a window hides. Compared with rereading the "
    "last 36 tokens for every prediction, perplexity is {window}× as high without sinks and {four}× with four sinks.",
    details="With four sinks, perplexity is {whole}× that of the unchanged model, and the model loses {lost}% of its "
    "gain from copying. All values are measured on {tokens} tokens that SmolLM2 reads.",
    notes=(
        Case(
            finding="Compared with four sinks, eight sinks lower the perplexity by {gain}%, {margin} percentage "
            "points above the claim's limit.",
            applies=lambda numbers: numbers["gain"] > LIMIT,
        ),
        Case(
            finding="Compared with four sinks, eight sinks lower the perplexity by {gain}%, {margin} percentage "
            "points below the claim's limit.",
            applies=lambda numbers: 0 < numbers["gain"] <= LIMIT,
        ),
        Case(
            finding="Eight sinks do not lower the perplexity compared with four sinks.",
            applies=lambda numbers: numbers["gain"] <= 0,
        ),
    ),
    quantities=(
        Quantity(
            "four",
            "perplexity with four sinks ÷ perplexity if the last 36 tokens are reread for each prediction",
            brief="perplexity with four sinks ÷ with rereading",
        ),
        Quantity(
            "window",
            "perplexity without sinks ÷ perplexity if the last 36 tokens are reread for each prediction",
            brief="perplexity without sinks ÷ with rereading",
        ),
        Quantity("whole", "perplexity with four sinks ÷ perplexity of the unchanged model"),
        Quantity(
            "gain",
            "reduction in perplexity from using eight sinks instead of four",
            "%",
            brief="reduction by eight instead of four sinks",
        ),
        Quantity(
            "margin", "difference between the reduction by eight sinks and the limit in the rule", "percentage points"
        ),
        Quantity("lost", "share of the model's gain from copying that is lost with four sinks", "%"),
        TOKENS,
    ),
    figure=Figure(x="sinks", y="perplexity", by="reader", x_title="number of sinks", y_title="perplexity", log="y"),
    needs=2 * WINDOW,
    uses_decoder=True,
)
