"""Recorded results of the swap experiment, in which a variant replaces softmax in a model, in one JSON file.

With them, visitors of the app need not wait. The file maps each task, written as a string, to the numbers of its
result. The tokens of a text are stored once.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Any

import msgspec

from attention_core.benchmarking.device import Stamp
from attention_core.experiments.swap.rows import (
    MODEL,
    PERIOD,
    CopyRow,
    CopyTask,
    OutputErrorRow,
    OutputErrorTask,
    ReadingRow,
    ReadingTask,
    SwapRow,
    SwapTask,
)

FILE = "model_patching/recorded/swap.json"
"""Path of the file in the package; ``python -m pages.model.record`` writes it."""


class Text(msgspec.Struct, frozen=True):
    """A text: its number of tokens before cutting, and readable labels of the tokens that were read."""

    total: int
    labels: tuple[str, ...]


class Reading(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The recorded numbers of a ``ReadingRow``; the other fields of the row follow from its task and its text."""

    perplexity: float
    seconds: float
    losses: tuple[float, ...] = ()


class Copy(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The recorded numbers of a ``CopyRow``; the other fields of the row follow from its task."""

    first: float
    copied: float
    seconds: float
    losses: tuple[float, ...] = ()


class Document(msgspec.Struct, frozen=True):
    """The recorded file: the texts by digest, and the numbers by task key; see ``digest`` and ``key``."""

    stamp: Stamp
    texts: dict[str, Text]
    readings: dict[str, Reading]
    copies: dict[str, Copy]
    output_errors: dict[str, float] = msgspec.field(name="strays")


def recorded_row(task: SwapTask) -> SwapRow | None:
    """Return the recorded row of a task; None if there is no row, or it lacks the details that the task needs."""
    name, document = key(task), recorded_document()
    if name is None or document is None:
        return None
    row = _row(task, name, document)
    lacks_details = getattr(task, "detail", False) and not getattr(row, "losses", ())
    return None if lacks_details else row


def key(task: SwapTask) -> str | None:
    """Return the key of a task in the recorded file, independent of ``detail`` and ``live``.

    None if a setting differs from the default: such tasks are not recorded.
    """
    setting = f"{task.word} {format_layers(task.layers)}"
    if task.model != MODEL:
        return None
    if isinstance(task, CopyTask):
        return f"{setting} {task.seed}" if task.period == PERIOD else None
    return f"{digest(task.text)} {setting}" if task.tokens is None else None


def digest(text: str) -> str:
    """Return the text's key in the file."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def format_layers(layers: Sequence[int]) -> str:
    """Format layers as text: ``3-7`` for neighbours, ``3,5`` for others, ``-`` for no layers."""
    if not layers:
        return "-"
    neighbours = tuple(layers) == tuple(range(layers[0], layers[-1] + 1))
    return f"{layers[0]}-{layers[-1]}" if neighbours else ",".join(map(str, layers))


def _row(task: SwapTask, name: str, document: Document) -> SwapRow | None:
    recorded_on = f"{document.stamp.date[:10]}, {document.stamp.cpu}"
    common: dict[str, Any] = {"word": task.word, "layers": task.layers, "recorded": recorded_on}
    if isinstance(task, OutputErrorTask):
        output = document.output_errors.get(name)
        return None if output is None else OutputErrorRow(**common, output=output)
    if isinstance(task, CopyTask):
        if (copy := document.copies.get(name)) is None:
            return None
        return CopyRow(**common, seed=task.seed, period=task.period, **msgspec.structs.asdict(copy))
    if (read := document.readings.get(name)) is None:
        return None
    text = document.texts[digest(task.text)]
    labels = text.labels if read.losses else ()
    numbers = msgspec.structs.asdict(read)
    return ReadingRow(**common, tokens=len(text.labels), total=text.total, labels=labels, **numbers)


@cache
def recorded_document() -> Document | None:
    """Return the content of the recorded file; None if the file does not exist."""
    file = resources.files("attention_core").joinpath(FILE)
    return from_json(file.read_bytes()) if file.is_file() else None


def from_json(data: bytes) -> Document:
    """Parse the recorded file."""
    return msgspec.json.decode(data, type=Document)


def to_json(stamp: Stamp, results: Iterable[tuple[SwapTask, SwapRow]]) -> bytes:
    """Encode rows as the recorded file, one row per line. Each text needs one row with details."""
    parts: dict[str, dict[str, object]] = {"texts": {}, "readings": {}, "copies": {}, "strays": {}}
    for task, row in results:
        name = key(task)
        assert name is not None
        if isinstance(row, OutputErrorRow):
            parts["strays"][name] = _short(row.output)
        elif isinstance(row, CopyRow):
            parts["copies"][name] = Copy(_short(row.first), _short(row.copied), _short(row.seconds), row.losses)
        else:
            parts["readings"][name] = Reading(_short(row.perplexity), _short(row.seconds), row.losses)
            if row.labels and isinstance(task, ReadingTask):
                parts["texts"][digest(task.text)] = Text(row.total, row.labels)
    lines = [f'"stamp": {json.dumps(msgspec.to_builtins(stamp))}']
    for part, rows in parts.items():
        entries = ",\n".join(f"{json.dumps(name)}: {msgspec.json.encode(row).decode()}" for name, row in rows.items())
        lines.append(f'"{part}": {{\n{entries}\n}}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _short(value: float) -> float:
    return float(f"{value:.6g}")
