"""Dataclasses of the swap experiment, in which a variant replaces softmax in a language model.

A task describes one measurement, and a row holds its result.
"""

from dataclasses import dataclass

from attention_core.variant import SOFTMAX

MODEL = "smollm2"
"""The built-in decoder."""
VOCABULARY = 49_152
"""Size of the built-in decoder's vocabulary."""
PERIOD = 96
"""Tokens of the copy test before they repeat: more than a window of 64 can reach."""
COPY_DISTANCE = PERIOD - 1
"""Distance in tokens from a repeated token to the successor of its first occurrence, which a model should copy."""
SEEDS = 3
"""Draws of the copy test's tokens: enough to see a spread, few enough for a short wait."""


@dataclass(frozen=True, kw_only=True)
class _Swap:
    """The base class of all tasks, with their common fields; ``word`` is as in ``model_patching.from_word``."""

    word: str = SOFTMAX
    layers: tuple[int, ...] = ()
    live: bool = False
    model: str = MODEL


@dataclass(frozen=True, kw_only=True)
class ReadingTask(_Swap):
    """A task that reads a text once.

    Attributes:
        tokens: the largest number of tokens to read; None for ``limits.swap_tokens``.
        detail: whether the loss of each token is kept.
    """

    text: str
    tokens: int | None = None
    detail: bool = False


@dataclass(frozen=True, kw_only=True)
class CopyTask(_Swap):
    """A task that reads random tokens, repeated once.

    Attributes:
        seed: seed of the tokens.
        period: number of tokens before they repeat.
        detail: whether the loss of each token is kept.
    """

    seed: int = 0
    period: int = PERIOD
    detail: bool = False


@dataclass(frozen=True, kw_only=True)
class OutputErrorTask(_Swap):
    """A task that measures a variant's output error on the unchanged model's queries, keys and values.

    Attributes:
        tokens: the largest number of tokens to read; None for ``limits.swap_tokens``.
    """

    text: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRow:
    """The perplexity of a text read once.

    Attributes:
        tokens: tokens of the text.
        total: tokens of the text before it was cut.
        perplexity: ``exp`` of the mean loss of all tokens but the first.
        seconds: time of the forward pass.
        labels: the tokens in readable form; empty without detail.
        losses: loss of each token but the first, in nats; empty without detail.
    """

    word: str
    layers: tuple[int, ...]
    tokens: int
    total: int
    perplexity: float
    seconds: float
    labels: tuple[str, ...] = ()
    losses: tuple[float, ...] = ()
    recorded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """The losses on random tokens, repeated once.

    Attributes:
        seed: seed of the tokens.
        period: number of tokens before they repeat.
        first: mean loss, in nats, on the first occurrence: the loss of a model that cannot copy.
        copied: mean loss on the repetition.
        seconds: time of the forward pass.
        losses: loss of each repeated token but the first, in nats; empty without detail.
    """

    word: str
    layers: tuple[int, ...]
    seed: int
    period: int
    first: float
    copied: float
    seconds: float
    losses: tuple[float, ...] = ()
    recorded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputErrorRow:
    """The output error of a variant.

    Attributes:
        output: relative Frobenius norm of the difference of the outputs, mean over heads and layers.
    """

    word: str
    layers: tuple[int, ...]
    output: float
    recorded: str = ""


SwapTask = ReadingTask | CopyTask | OutputErrorTask
SwapRow = ReadingRow | CopyRow | OutputErrorRow
