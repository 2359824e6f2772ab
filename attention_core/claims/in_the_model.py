"""What claims about a changed model share: what is read, what stands in softmax's place, and what comes of it.

Whatever model the input was read by, these claims are about the one that writes: ``swap.MODEL``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from attention_core import metrics, registry
from attention_core.claims.claim import Ask, Numbers, Quantity, Verdict
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.surgery import UNIFORM, from_word
from attention_core.variant import SOFTMAX, Paper

PERIOD = 48
"""Tokens of the copy test until they repeat: more than any window tried reaches back."""
STAND_INS = (
    *(f"local~window~{window}" for window in (8, 32)),
    *(f"sink~window~{window}" for window in (8, 32)),
    *(f"topk~k~{k}" for k in (2, 8)),
    "linear",
    "retention",
    UNIFORM,
)
"""What stands in softmax's place, in all layers: some with two budgets, and some that look far off or nowhere."""
PERFORMER = Paper("Rethinking Attention with Performers", 2020, "https://arxiv.org/abs/2009.14794")
IN_ORDER = {"holds": 0.9, "partly": 0.6}
"""Rank correlations from which on an error is said to put others in order, and roughly in order."""
TOKENS = Quantity("tokens", "tokens read", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInRow:
    """What came of a variant in softmax's place in all layers.

    Attributes:
        variant: its name, without its budget.
        word: with it.
        tokens: of the text.
        times: the perplexity, over that of the model as it is.
        lost: per cent of what copying saves, in nats, that is lost.
        output: per cent by which its outputs err on what the model as it is attends with, mean over heads and layers.
        kept: per cent of softmax's weight on each query's sharpest logit that the variant gives it too, likewise.
    """

    variant: str
    word: str
    tokens: int
    times: float
    lost: float
    output: float
    kept: float


def stand_ins(ask: Ask) -> Iterator[StandInRow]:
    """Read the text, and copy, with each of ``STAND_INS``.

    Raises:
        UntestableError: if the input is no text.
    """
    layers = tuple(range(models.layer_count(swap.MODEL)))
    for word in STAND_INS:
        read = reading(ask, word, layers)
        stray = _straying(swap.StrayTask(text=ask.text, word=word, layers=layers, tokens=ask.decoded))
        yield StandInRow(
            variant=from_word(word).title,
            word=word,
            tokens=read.tokens,
            times=read.perplexity / reading(ask, SOFTMAX, ()).perplexity,
            lost=lost(word, layers),
            output=100 * stray.output,
            kept=100 * _kept(ask.text, ask.decoded, word),
        )


def order(rows: Sequence[StandInRow], values: Sequence[float]) -> Numbers:
    """How well the errors of the outputs put other numbers, one for each row, in order."""
    errors = [row.output for row in rows]
    return {
        "rho": metrics.rank_correlation(errors, values),
        "tau": metrics.kendall(errors, values),
        "n": len(rows),
        TOKENS.name: rows[0].tokens,
    }


def by_order(numbers: Numbers, bounds: Numbers) -> Verdict:
    """By the rank correlation."""
    if numbers["rho"] >= bounds["holds"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["rho"] >= bounds["partly"] else Verdict.FAILS


def reading(ask: Ask, word: str, layers: tuple[int, ...]) -> swap.ReadingRow:
    """The text read with a variant in these layers, as it is with none."""
    return _reading(swap.ReadingTask(text=ask.text, word=word, layers=layers, tokens=ask.decoded))


def lost(word: str, layers: tuple[int, ...]) -> float:
    """Per cent of what copying saves, in nats, that is lost with a variant in these layers."""
    readers = ((SOFTMAX, ()), (word, layers))
    whole, own = (_copying(swap.CopyTask(word=who, layers=where, period=PERIOD)) for who, where in readers)
    return 100 * (own.copied - whole.copied) / (whole.first - whole.copied)


# Five claims ask for the same; none of these is longer than a line.
_reading = lru_cache(256)(swap.reading)
_copying = lru_cache(256)(swap.copying)
_straying = lru_cache(256)(swap.straying)


@lru_cache(256)
def _kept(text: str, tokens: int, word: str) -> float:
    from attention_core.inputs.models.recorder import record  # imports transformers, by now loaded

    loaded = models.load(swap.MODEL)
    ids = swap.text_tokens(text, tokens=tokens).ids
    attends, exact, found = from_word(word), registry.get(SOFTMAX), []
    for layer in record(loaded.model, ids, set(range(models.layer_count(swap.MODEL)))).values():
        own, true = (each.weights(layer.q, layer.k, causal=True) for each in (attends, exact))
        sharpest = true.argmax(-1, keepdim=True)
        here, there = (weights.gather(-1, sharpest) for weights in (own, true))
        found.append((torch.minimum(here, there).clamp(min=0) / there).double().mean())
    return float(torch.stack(found).mean())
