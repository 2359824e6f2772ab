"""Experiments for several claims: they replace softmax in a trained model and measure perplexity and copying.

They always use the decoder ``swap.MODEL``, even if another model computed the queries, keys and values of the input.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from attention_core import metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Place, Quantity, UntestableError
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments import swap
from attention_core.formatting import format_readable
from attention_core.inputs import models
from attention_core.model_patching import UNIFORM, from_word, losses, perplexity, swapped
from attention_core.variant import SOFTMAX

PERIOD = 48
"""Tokens of the copy test before they repeat: more than the widest window tried."""
MIN_COPY_GAIN = 1.0
"""Minimum gain of the unchanged model from copying, in nats per token.

A share of a smaller gain would not be meaningful.
"""
REPLACEMENTS = (
    *(f"local~window~{window}" for window in (8, 32)),
    *(f"sink~window~{window}" for window in (8, 32)),
    *(f"topk~k~{k}" for k in (2, 8)),
    "linear",
    "retention",
    UNIFORM,
)
"""The replacements for softmax in all layers: some at two budgets, some poor approximations, and one that ignores the
keys."""
TOKENS = Quantity("tokens", "number of tokens that SmolLM2 reads from the text", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementRow:
    """The results with one variant in place of softmax in all layers.

    Attributes:
        variant: the variant's title, without its budget.
        word: the variant with its budget.
        tokens: tokens of the text.
        times: the perplexity divided by the unchanged model's perplexity.
        lost: per cent of the unchanged model's gain from copying that is lost with the variant. The gain is the
            difference of its losses, in nats, on tokens and on their repetition.
        output: relative error of the variant's outputs in per cent, mean over heads and layers. The queries, keys
            and values are those of the unchanged model reading the text.
        output_copying: the same error when the unchanged model reads the tokens of the copy test.
        kept: per cent of softmax's weight on each query's largest logit that the variant keeps, on the unchanged model.
    """

    variant: str
    word: str
    tokens: int
    times: float
    lost: float
    output: float
    output_copying: float
    kept: float


def replacement_rows(inputs: ExperimentInput) -> Iterator[ReplacementRow]:
    """Yield the results of reading the text and of copying with each of ``REPLACEMENTS``.

    Raises:
        UntestableError: if the input is not a text, or copying its tokens saves too little.
    """
    layers = tuple(range(models.layer_count(swap.MODEL)))
    ids = tuple(swap.text_tokens(inputs.text, tokens=inputs.decoder_token_count).ids)
    for word in REPLACEMENTS:
        row = reading_row(inputs, word, layers)
        yield ReplacementRow(
            variant=from_word(word).title,
            word=word,
            tokens=row.tokens,
            times=row.perplexity / reading_row(inputs, SOFTMAX, ()).perplexity,
            lost=copy_loss_percent(inputs, word, layers),
            output=100 * _output_error(ids, word, layers),
            output_copying=100 * _output_error(repeated_tokens(inputs), word, layers),
            kept=100 * _kept_weight(inputs.text, inputs.decoder_token_count, word),
        )


def correlation_claim(
    *,
    quantities: tuple[Quantity, ...],
    figure: Figure,
    **declared: Any,  # noqa: ANN401 - the other fields of Claim
) -> Claim:
    """Return a claim about the rank correlation between the quantities on its figure's axes, over all replacements.

    The claim's source is the paper on Performer, which compares approximations by the error of their outputs. The
    rule has a tolerance because of rounding errors, such as a correlation of 0.8999999999999999.

    Args:
        quantities: the claim's quantities.
        figure: the chart, whose axes are the two numbers.
        declared: the other fields of ``Claim``.
    """

    def numbers(rows: Sequence[ReplacementRow]) -> Numbers:
        errors, effects = ([getattr(row, axis.attribute) for row in rows] for axis in (figure.x, figure.y))
        return {
            "rho": metrics.rank_correlation(errors, effects),
            "tau": metrics.kendall(errors, effects),
            "n": len(rows),
            TOKENS.name: rows[0].tokens,
        }

    return Claim(
        source=registry.variant("performer").source,
        place=Place("model", {"m_view": "predicts"}),
        measure=replacement_rows,
        numbers=numbers,
        bounds={"holds": 0.9, "partly": 0.6},
        verdict=Rule(
            holds=Condition("rho", ">=", "holds", tolerance=1e-9),
            partly=Condition("rho", ">=", "partly", tolerance=1e-9),
        ),
        quantities=(*quantities, TOKENS),
        figure=figure,
        needs=64,
        uses_decoder=True,
        **declared,
    )


def reading_row(inputs: ExperimentInput, word: str, layers: tuple[int, ...]) -> swap.ReadingRow:
    """Read the text with the variant ``word`` in these layers and return the row; no layers for the unchanged model."""
    return _reading_row(swap.ReadingTask(text=inputs.text, word=word, layers=layers, tokens=inputs.decoder_token_count))


def repeated_tokens(inputs: ExperimentInput) -> tuple[int, ...]:
    """Return ``PERIOD`` tokens of the text in a random order (seed 0), followed by the same tokens again.

    In a random order, the second half can only be predicted by copying. The tokens come from the text, so that the
    result depends on the text.
    """
    ids = swap.text_tokens(inputs.text, tokens=inputs.decoder_token_count).ids
    shuffled = torch.randperm(len(ids), generator=torch.Generator().manual_seed(0))[:PERIOD]
    tokens = tuple(ids[i] for i in shuffled.tolist())
    return tokens + tokens


def copy_loss_percent(inputs: ExperimentInput, word: str, layers: tuple[int, ...]) -> float:
    """Return the per cent of the model's gain from copying, in nats, that a variant in these layers loses.

    Raises:
        UntestableError: if the unchanged model saves less than ``MIN_COPY_GAIN`` by copying.
    """
    ids = repeated_tokens(inputs)
    first, second = _copying(ids, SOFTMAX, ())
    if first - second < MIN_COPY_GAIN:
        raise UntestableError(
            "SmolLM2 reads shuffled tokens of this text twice in a row. The second time, it should predict them "
            "better, but its loss is only {saved} nats per token lower. This claim needs a difference of at least "
            "{least} nat per token. Choose a text with a wider variety of words.",
            saved=format_readable(first - second, 2),
            least=format_readable(MIN_COPY_GAIN, None),
        )
    return 100 * (_copying(ids, word, layers)[1] - second) / (first - second)


# These results are cached because several claims need them. Each entry is only a few numbers.
_reading_row = lru_cache(256)(swap.measure_reading)
_output_error = lru_cache(256)(swap.output_error)


@lru_cache(256)
def _copying(ids: tuple[int, ...], word: str, layers: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean loss per token, in nats, of each half of ``ids``, with the variant ``word`` in these layers.

    The first token of each half is left out.
    """
    loaded, half = models.load(swap.MODEL), len(ids) // 2
    with swapped(loaded.model, dict.fromkeys(layers, from_word(word))):
        token_losses = losses(loaded, ids)
    return float(token_losses[: half - 1].mean()), float(token_losses[half:].mean())


def reread_perplexity(inputs: ExperimentInput, keys: int) -> float:
    """Return the text's perplexity when every token is predicted from the last ``keys`` tokens alone.

    The unchanged model reads these tokens again for every prediction, so that no layer has information about earlier
    ones.
    """
    return _reread_perplexity(tuple(swap.text_tokens(inputs.text, tokens=inputs.decoder_token_count).ids), keys)


@lru_cache(16)
def _reread_perplexity(ids: tuple[int, ...], keys: int) -> float:
    loaded = models.load(swap.MODEL)
    first = losses(loaded, ids[: keys + 1])  # one pass: each token has at most ``keys`` predecessors
    later = [losses(loaded, ids[end - keys : end + 1])[-1:] for end in range(keys + 1, len(ids))]
    return perplexity(torch.cat([first, *later]))


@lru_cache(256)
def _kept_weight(text: str, tokens: int, word: str) -> float:
    # ``recorder`` is not imported at the top of the file, because it imports transformers, which takes seconds.
    from attention_core.inputs.models.recorder import record

    loaded = models.load(swap.MODEL)
    ids = swap.text_tokens(text, tokens=tokens).ids
    attention, exact, kept = from_word(word), registry.get(SOFTMAX), []
    for layer in record(loaded.model, ids, set(range(models.layer_count(swap.MODEL)))).values():
        weights, softmax = (each.weights(layer.q, layer.k, causal=True) for each in (attention, exact))
        highest = softmax.argmax(-1, keepdim=True)
        kept_weights, softmax_weights = (weights.gather(-1, highest) for weights in (weights, softmax))
        kept.append((torch.minimum(kept_weights, softmax_weights).clamp(min=0) / softmax_weights).double().mean())
    return float(torch.stack(kept).mean())
