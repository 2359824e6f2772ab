"""What does a variant do to what a model says? Its losses on a text, its copying, and how far its outputs stray.

Without training, a variant stands in softmax's place in some layers of a decoder. Of perplexity and copying neither
stands for the other: both are asked for together.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Any, TypeVar

import msgspec
import torch

from attention_core import metrics, registry
from attention_core.experiments import error
from attention_core.experiments.task import Load, load
from attention_core.inputs import models
from attention_core.inputs.text import Tokens, tokenise
from attention_core.limits import current
from attention_core.measure.device import Stamp
from attention_core.surgery import UNIFORM, copy_losses, from_word, losses, perplexity, swapped
from attention_core.variant import SOFTMAX, Attention

MODEL = "smollm2"
"""The built-in decoder."""
PERIOD = 96
"""Tokens of the copy test until they repeat: more than a window of 64 reaches back."""
SEEDS = 3
"""Draws of the copy test's tokens: enough to see a spread, few enough to wait for."""
FLOORS = (UNIFORM, "synthesizer~kind~random")
"""What any claim must beat: the plain mean of the values, and random weights."""
EDGES = ("bottom", "middle", "top")
"""From where more and more layers are replaced."""


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


T = TypeVar("T")
SwapTask = ReadingTask | CopyTask | StrayTask
SwapRow = ReadingRow | CopyRow | StrayRow
RowT = TypeVar("RowT", ReadingRow, CopyRow, StrayRow)


def tasks(
    text: str,
    words: Sequence[str],
    layers: tuple[int, ...],
    *,
    tokens: int | None = None,
    seeds: int = 1,
    live: bool = False,
    model: str = MODEL,
) -> tuple[SwapTask, ...]:
    """The model as it is and each variant in its layers: the text read, and the copy test, in turn.

    Args:
        text: the text.
        words: what attends.
        layers: in which layers.
        tokens: as of ``ReadingTask``.
        seeds: draws of the copy test's tokens.
        live: likewise.
        model: likewise.
    """
    places: list[tuple[str, tuple[int, ...]]] = [(SOFTMAX, ()), *((word, layers) for word in words)]
    found: list[SwapTask] = []
    for seed in range(seeds):
        for word, which in places:
            if seed == 0:
                found.append(
                    ReadingTask(text=text, word=word, layers=which, tokens=tokens, detail=True, live=live, model=model)
                )
            found.append(CopyTask(word=word, layers=which, seed=seed, detail=True, live=live, model=model))
    return tuple(found)


def depths(count: int) -> tuple[int, ...]:
    """Numbers of layers that are replaced: one, then twice as many each time up to a quarter, then quarters."""
    doubled = {2**i for i in range(count.bit_length()) if 2**i <= count // 4}
    return tuple(sorted({1, *doubled, *(-(-count * part // 4) for part in (1, 2, 3, 4))}))


def floors(edge: str) -> tuple[str, ...]:
    """What is held against the variants: of one layer at a time the mean says as much as random weights do."""
    return FLOORS[:1] if edge == "single" else FLOORS


def stack(edge: str, depth: int, count: int) -> tuple[int, ...]:
    """So many neighbouring layers of ``count``, from the first on, up to the last, or in the middle."""
    start = {"bottom": 0, "top": count - depth, "middle": (count - depth) // 2}[edge]
    return tuple(range(start, start + depth))


def layer_tasks(text: str, words: Sequence[str], edge: str, count: int, *, live: bool = False) -> tuple[SwapTask, ...]:
    """Reading and copying against the layers that are replaced; the floors, then the ends, then what lies between.

    Args:
        text: the text.
        words: what attends.
        edge: one of ``EDGES``, from which more and more layers are replaced; ``single`` for one layer at a time.
        count: layers of the model.
        live: as of ``ReadingTask``.
    """
    steps = _coarse_first(range(count) if edge == "single" else depths(count))
    places = [(step,) if edge == "single" else stack(edge, step, count) for step in steps]
    found: list[SwapTask] = [ReadingTask(text=text, live=live), CopyTask(live=live)]
    for place in places:
        for word in words:
            found += [
                ReadingTask(text=text, word=word, layers=place, live=live),
                CopyTask(word=word, layers=place, live=live),
            ]
    return tuple(found)


def budget_tasks(
    text: str, words: Sequence[str], layers: tuple[int, ...], n: int, *, stray: bool = False, live: bool = False
) -> tuple[SwapTask, ...]:
    """Reading and copying against each variant's budget, and with it how far its outputs stray.

    Args:
        text: the text.
        words: the variants with their settings; one without a budget is read as it is.
        layers: in which layers.
        n: tokens of the text, where the ladders of whole numbers end.
        stray: whether that is asked for as well.
        live: as of ``ReadingTask``.
    """
    found: list[SwapTask] = [ReadingTask(text=text, live=live), CopyTask(live=live)]
    ladders = [[a.word for a in ladder(word, n)] for word in words]
    for step in range(max(map(len, ladders), default=0)):
        for rungs in ladders:
            if step < len(rungs):
                word = _coarse_first(rungs)[step]
                found += [
                    ReadingTask(text=text, word=word, layers=layers, live=live),
                    CopyTask(word=word, layers=layers, live=live),
                ]
                if stray:
                    found.append(StrayTask(text=text, word=word, layers=layers, live=live))
    return tuple(found)


def ladder(word: str, n: int) -> tuple[Attention, ...]:
    """A variant over its budget, as the Error page asks for it; as it is where it has none, nothing for the mean."""
    if word == UNIFORM:
        return ()
    return tuple(error.rungs(registry.from_word(word), n))


def able(words: Iterable[str]) -> list[str]:
    """Those of the words whose variants can hide the future."""
    return [word for word in words if word == UNIFORM or not registry.from_word(word).variant.causal_reason]


def _coarse_first(steps: Sequence[T]) -> list[T]:
    """The ends and every fourth first, then every second, then the rest, so that a chart has its form early."""
    last = len(steps) - 1
    order = sorted(range(len(steps)), key=lambda i: (0 if i % 4 == 0 or i == last else 1 if i % 2 == 0 else 2, i))
    return [steps[i] for i in order]


def run(task: SwapTask, *, load: Load = load) -> tuple[SwapRow]:
    """Read, copy or compare; what has been recorded is not computed again unless the task asks for that.

    Raises:
        LabError: if the text holds nothing, the model cannot be had, or a variant cannot be causal.
    """
    if not task.live and (found := known(task)) is not None:
        return (found,)
    return (compute(task),)


def compute(task: SwapTask) -> SwapRow:
    """Run a task, recorded or not; errors as of ``run``."""
    if isinstance(task, ReadingTask):
        return reading(task)
    return copying(task) if isinstance(task, CopyTask) else straying(task)


def text_tokens(text: str, *, tokens: int | None = None, model: str = MODEL) -> Tokens:
    """The tokens of a text that are read; errors as of ``inputs.from_text``."""
    most = current().swap_tokens
    return tokenise(text, model=model, max_tokens=most if tokens is None else min(tokens, most))


def reading(task: ReadingTask) -> ReadingRow:
    """Read a text, recorded or not; errors as of ``run``."""
    loaded, told = models.load(task.model), text_tokens(task.text, tokens=task.tokens, model=task.model)
    attends, begun = from_word(task.word), time.perf_counter()
    with swapped(loaded.model, dict.fromkeys(task.layers, attends)):
        found = losses(loaded, told.ids)
    return ReadingRow(
        word=task.word,
        layers=task.layers,
        tokens=len(told.ids),
        total=told.total,
        perplexity=perplexity(found),
        seconds=time.perf_counter() - begun,
        labels=told.labels if task.detail else (),
        losses=_rounded(found) if task.detail else (),
    )


def copying(task: CopyTask) -> CopyRow:
    """Take the copy test; errors as of ``run``."""
    loaded, attends, begun = models.load(task.model), from_word(task.word), time.perf_counter()
    with swapped(loaded.model, dict.fromkeys(task.layers, attends)):
        first, second = copy_losses(loaded, task.period, task.seed)
    return CopyRow(
        word=task.word,
        layers=task.layers,
        seed=task.seed,
        period=task.period,
        first=float(first.mean()),
        copied=float(second.mean()),
        seconds=time.perf_counter() - begun,
        losses=_rounded(second) if task.detail else (),
    )


def straying(task: StrayTask) -> StrayRow:
    """Compare outputs; errors as of ``run``."""
    from attention_core.inputs.models.recorder import record  # imports transformers, by now loaded

    loaded, told = models.load(task.model), text_tokens(task.text, tokens=task.tokens, model=task.model)
    attends, exact = from_word(task.word), registry.get(SOFTMAX)
    found = []
    for layer in record(loaded.model, told.ids, set(task.layers)).values():
        own, true = (a.attend(layer.q, layer.k, layer.v, causal=layer.causal) for a in (attends, exact))
        found += [float(metrics.relative_error(a, b)) for a, b in zip(own.double(), true.double(), strict=True)]
    return StrayRow(word=task.word, layers=task.layers, output=sum(found) / len(found) if found else 0.0)


def _rounded(found: torch.Tensor) -> tuple[float, ...]:
    """To a ten-thousandth of a nat, which is more than anybody can see and less than another machine's rounding."""
    return tuple(round(loss, 4) for loss in found.tolist())


# What has been recorded.

RECORDED = "surgery/recorded/swap.json"
"""Where in the package; ``python -m pages.model.record`` writes it."""


class Document(msgspec.Struct, frozen=True):
    """The recorded file: rows by their tasks' identities."""

    stamp: Stamp
    readings: dict[str, ReadingRow]
    copies: dict[str, CopyRow]
    strays: dict[str, StrayRow]


def known(task: SwapTask) -> SwapRow | None:
    """What has been recorded of a task; None where that is less than it asks for."""
    found = recorded().get(identity(task))
    lacks = getattr(task, "detail", False) and not getattr(found, "losses", ())
    return None if lacks else found


def identity(task: SwapTask) -> str:
    """What tells a task apart from all others, however much of it is asked for, live or not."""
    fields = [name for name in task.__dataclass_fields__ if name not in ("live", "detail")]
    told = {name: value for name in fields if (value := getattr(task, name))}
    if "text" in told:
        told["text"] = blake2b(str(told["text"]).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return json.dumps([type(task).__name__, told], sort_keys=True)


@cache
def recorded() -> dict[str, SwapRow]:
    """What has been recorded by its task's identity."""
    file = resources.files("attention_core").joinpath(RECORDED)
    if not file.is_file():
        return {}
    found = msgspec.json.decode(file.read_bytes(), type=Document)
    when = f"{found.stamp.date[:10]}, {found.stamp.cpu}"
    rows: dict[str, SwapRow] = {**found.readings, **found.copies, **found.strays}
    return {key: replace(row, recorded=when) for key, row in rows.items()}


def to_json(stamp: Stamp, found: Sequence[tuple[SwapTask, SwapRow]]) -> bytes:
    """Rows as the recorded file, one a line."""
    document = msgspec.to_builtins(
        Document(
            stamp=replace(stamp, torch=str(stamp.torch)),  # it is a word of a kind of its own
            readings={identity(t): _short(r) for t, r in found if isinstance(r, ReadingRow)},
            copies={identity(t): _short(r) for t, r in found if isinstance(r, CopyRow)},
            strays={identity(t): _short(r) for t, r in found if isinstance(r, StrayRow)},
        )
    )
    lines = [f'"stamp": {json.dumps(document.pop("stamp"))}']
    for name, rows in document.items():
        each = ",\n".join(f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows.items())
        lines.append(f"{json.dumps(name)}: {{\n{each}\n}}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _short(row: RowT) -> RowT:
    numbers: dict[str, Any] = {
        name: float(f"{value:.6g}")
        for name in row.__dataclass_fields__
        if isinstance(value := getattr(row, name), float)
    }
    return replace(row, **numbers, recorded="")
