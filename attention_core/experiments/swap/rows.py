"""What a swap is asked, and what is found: tasks and their rows."""

from dataclasses import dataclass

from attention_core.variant import SOFTMAX

MODEL = "smollm2"
"""The built-in decoder."""
PERIOD = 96
"""Tokens of the copy test until they repeat: more than a window of 64 reaches back."""
SEEDS = 3
"""Draws of the copy test's tokens: enough to see a spread, few enough to wait for."""


@dataclass(frozen=True, kw_only=True)
class ReadingTask:
    """A text read once.

    Attributes:
        text: the text.
        word: what attends, as ``surgery.from_word`` reads it.
        layers: in which layers; none for the model as it is.
        tokens: the most of the text that are read; None for ``limits.swap_tokens``.
        detail: whether the loss of each token is kept.
        live: whether it is read anew where a recorded result is there.
        model: key of a decoder, or ``owner/name``.
    """

    text: str
    word: str = SOFTMAX
    layers: tuple[int, ...] = ()
    tokens: int | None = None
    detail: bool = False
    live: bool = False
    model: str = MODEL


@dataclass(frozen=True, kw_only=True)
class CopyTask:
    """Random tokens, said twice.

    Attributes:
        word: as of ``ReadingTask``, and so are those below.
        layers: likewise.
        seed: of the tokens.
        period: until they repeat.
        detail: likewise.
        live: likewise.
        model: likewise.
    """

    word: str = SOFTMAX
    layers: tuple[int, ...] = ()
    seed: int = 0
    period: int = PERIOD
    detail: bool = False
    live: bool = False
    model: str = MODEL


@dataclass(frozen=True, kw_only=True)
class StrayTask:
    """How far a variant's outputs stray from softmax's on what the model as it is attends with.

    Attributes:
        text: as of ``ReadingTask``, and so are those below.
        word: likewise.
        layers: likewise.
        tokens: likewise.
        live: likewise.
        model: likewise.
    """

    text: str
    word: str
    layers: tuple[int, ...]
    tokens: int | None = None
    live: bool = False
    model: str = MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRow:
    """A text read once.

    Attributes:
        word: what attended.
        layers: in which layers.
        tokens: of the text.
        total: of the text before it was cut.
        perplexity: ``exp`` of the mean loss of all tokens but the first.
        seconds: of the pass.
        labels: the tokens, as a person would write them; empty without detail.
        losses: of each token but the first, in nats; empty without detail.
        recorded: when and on what it was recorded; empty where it was read now.
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
    """Random tokens, said twice.

    Attributes:
        word: what attended.
        layers: in which layers.
        seed: of the tokens.
        period: until they repeat.
        first: mean loss, in nats, when they are said first: what a model pays that cannot copy.
        copied: mean loss when they are said again.
        seconds: of the pass.
        losses: of each token said again but the first, in nats; empty without detail.
        recorded: as of ``ReadingRow``.
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
class StrayRow:
    """How far a variant's outputs stray.

    Attributes:
        word: what attended.
        layers: in which layers.
        output: relative Frobenius norm of the difference of the outputs, mean over heads and layers.
        recorded: as of ``ReadingRow``.
    """

    word: str
    layers: tuple[int, ...]
    output: float
    recorded: str = ""


SwapTask = ReadingTask | CopyTask | StrayTask
SwapRow = ReadingRow | CopyRow | StrayRow
