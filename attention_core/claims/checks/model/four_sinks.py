"""Claim: a language model still predicts text well if queries attend only to a window and the first four tokens.

The first four tokens are called sinks. The baseline is the unchanged model, limited to as many of the latest tokens as
the window and four sinks hold. The baseline reads these tokens again for every prediction, without a cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core import registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity
from attention_core.claims.model_experiments import TOKENS, copy_loss_percent, reading_row, reread_perplexity
from attention_core.claims.rule import Condition, Numbers, Rule, all_of, any_of
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.variant import SOFTMAX

WINDOW = 32
"""Width of the window in tokens, much shorter than the text."""
SINKS = (0, 1, 2, 4, 8)
FEW_SINKS, MANY_SINKS = 4, 8
WHOLE, WINDOWED, REREAD = (
    "unchanged model, whole text",
    "window and first tokens (sinks)",
    "unchanged model, last 36 tokens reread",
)
REREAD_TOKENS = FEW_SINKS + WINDOW
"""Tokens that the baseline rereads for each prediction: as many as a query attends to with four sinks."""
MAX_GAIN = 5
"""Largest reduction of perplexity by eight sinks compared with four, in per cent, that counts as no improvement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow:
    """The perplexity, and the part of the gain from copying that is lost, for one way to read the text.

    Attributes:
        reader: ``WHOLE`` or ``REREAD``: the unchanged model reads all tokens or only the last ones. ``WINDOWED``: all
            layers have a window and sinks.
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
    """Yield the perplexity and the lost gain from copying for each number of sinks, and for the unchanged model."""
    layers = tuple(range(models.layer_count(swap.MODEL)))
    control = reread_perplexity(inputs, REREAD_TOKENS)
    for sinks in SINKS:
        word = f"sink~window~{WINDOW}~sinks~{sinks}"
        for reader, reader_word, reader_layers in ((WINDOWED, word, layers), (WHOLE, SOFTMAX, ())):
            row = reading_row(inputs, reader_word, reader_layers)
            yield SinkRow(
                reader=reader,
                sinks=sinks,
                tokens=row.tokens,
                perplexity=row.perplexity,
                lost=copy_loss_percent(inputs, reader_word, reader_layers),
            )
        yield SinkRow(reader=REREAD, sinks=sinks, tokens=row.tokens, perplexity=control, lost=None)


def numbers(rows: Sequence[SinkRow]) -> Numbers:
    """Return perplexities with a window, divided by those of the unchanged model.

    They are compared with ``REREAD`` for no sinks and for four, and with ``WHOLE`` for four. Also return by how many
    per cent the perplexity is lower with eight sinks than with four, and the lost gain from copying with four.
    """
    control, whole = (next(row.perplexity for row in rows if row.reader == reader) for reader in (REREAD, WHOLE))
    by_sinks = {row.sinks: row for row in rows if row.reader == WINDOWED}
    gain = 100 * (1 - by_sinks[MANY_SINKS].perplexity / by_sinks[FEW_SINKS].perplexity)
    return {
        "window": by_sinks[0].perplexity / control,
        "four": by_sinks[FEW_SINKS].perplexity / control,
        "gain": gain,
        "whole": by_sinks[FEW_SINKS].perplexity / whole,
        "lost": by_sinks[FEW_SINKS].lost or 0.0,
        TOKENS.name: rows[0].tokens,
    }


CLAIM = Claim(
    statement="If each query attends only to the most recent tokens, a language model predicts text badly. Attending "
    "to the first four tokens (sinks) as well prevents this, and more than four sinks add nothing.",
    short="a window also needs the first four tokens",
    source=registry.variant("sink").source,
    place=Place("model", {"m_view": "budget"}),
    experiment="SmolLM2-135M reads the first 128 tokens of the text, without retraining. In all layers, each query "
    "attends only to the last 32 tokens (window) and to the first 0, 1, 2, 4 or 8 tokens (sinks). Perplexity measures "
    "how badly a model predicts the next tokens. The baseline, as in the paper by Xiao et al., is the unchanged model. "
    "It reads only the 36 tokens (32 + 4) before the token to be predicted, and reads them again for every prediction. "
    "To test copying, 48 tokens of the text are shuffled once, and the model reads this sequence twice in a row. The "
    "second half can be predicted only by copying from the first. The gain from copying is how much lower the "
    "unchanged model's loss is in the second half than in the first. If a window raises the loss in the second half, "
    "this rise is the part of the gain that is lost.",
    rule="Perplexity measures how badly a model predicts text. The baseline is the unchanged model, which reads the "
    "last 36 tokens again for every prediction. Here, queries attend to a window of recent tokens. The claim holds "
    "if three conditions are met. (1) Without the first tokens (sinks), the perplexity is at least {fails}× that of "
    "the baseline. (2) With four sinks, it is at most {near}× that of the baseline. (3) Eight sinks lower the "
    "perplexity by at most {little}% compared with four sinks. The claim partly holds if condition (1) and only one "
    "of the others are met.",
    bounds={"fails": 1.5, "near": 1.1, "little": MAX_GAIN},
    verdict=Rule(
        requires=Condition("window", ">=", "fails"),
        holds=all_of(Condition("four", "<=", "near"), Condition("gain", "<=", "little")),
        partly=any_of(Condition("four", "<=", "near"), Condition("gain", "<=", "little")),
    ),
    finding="A window of recent tokens hides the first tokens (sinks), on which trained models put weight that they "
    "need for no other token. With such a window, perplexity (lower is better) is {window}× that of a model that "
    "rereads the last 36 tokens for every prediction. If queries also attend to four sinks, it is {four}×.",
    details="If each query attends only to a window and the first four tokens (sinks), perplexity is {whole}× that "
    "of the unchanged model on the whole text. The gain from copying (better prediction of repeated tokens) falls by "
    "{lost}%. All results are for the {tokens} tokens that SmolLM2 reads.",
    quantities=(
        Quantity("four", "perplexity with four sinks ÷ perplexity if the model reads only the last 36 tokens"),
        Quantity("window", "perplexity without sinks ÷ perplexity if the model reads only the last 36 tokens"),
        Quantity("whole", "perplexity with a window and four sinks ÷ perplexity of the unchanged model"),
        Quantity("gain", "reduction in perplexity with eight sinks instead of four", "%"),
        Quantity(
            "lost",
            "share of the model's gain from copying repeated tokens that is lost with a window and four sinks",
            "%",
        ),
        TOKENS,
    ),
    figure=Figure(
        x=Axis("sinks", "number of first tokens that every query can attend to (sinks)"),
        y=Axis("perplexity", "perplexity (lower is better)", log=True),
        by="reader",
    ),
    needs=2 * WINDOW,
    uses_decoder=True,
)
