"""Recorded results of the swap experiment in one JSON file, so that visitors need not wait for them.

The file maps each task, written as a string, to its rows; a row is the list of its numbers. The tokens of a text are
stored once.
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

RECORDED = "model_patching/recorded/swap.json"
"""Path of the file in the package; ``python -m pages.model.record`` writes it."""


class Text(msgspec.Struct, frozen=True):
    """A text: its number of tokens before cutting, and readable labels of the tokens that were read."""

    total: int
    labels: tuple[str, ...]


class Reading(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The stored numbers of a ``ReadingRow``; its task and its text give the other fields."""

    perplexity: float
    seconds: float
    losses: tuple[float, ...] = ()


class Copy(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The stored numbers of a ``CopyRow``; its task gives the other fields."""

    first: float
    copied: float
    seconds: float
    losses: tuple[float, ...] = ()


class Document(msgspec.Struct, frozen=True):
    """The recorded file: texts by their digests, and numbers by their tasks' keys; ``strays`` holds output errors."""

    stamp: Stamp
    texts: dict[str, Text]
    readings: dict[str, Reading]
    copies: dict[str, Copy]
    strays: dict[str, float]


def known(task: SwapTask) -> SwapRow | None:
    """Return the recorded row of a task; None if there is no row, or it lacks the details that the task needs."""
    name, found = key(task), recorded()
    if name is None or found is None:
        return None
    row = _row(task, name, found)
    lacks = getattr(task, "detail", False) and not getattr(row, "losses", ())
    return None if lacks else row


def key(task: SwapTask) -> str | None:
    """Return the key of a task among the recorded tasks of its kind, independent of ``detail`` and ``live``.

    None if a setting differs from the default: such tasks are not recorded.
    """
    about = f"{task.word} {span(task.layers)}"
    if task.model != MODEL:
        return None
    if isinstance(task, CopyTask):
        return f"{about} {task.seed}" if task.period == PERIOD else None
    return f"{digest(task.text)} {about}" if task.tokens is None else None


def digest(text: str) -> str:
    """Return the text's key in the file."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def span(layers: Sequence[int]) -> str:
    """Format layers: ``3-7`` for neighbours, ``-`` for no layers."""
    if not layers:
        return "-"
    neighbours = tuple(layers) == tuple(range(layers[0], layers[-1] + 1))
    return f"{layers[0]}-{layers[-1]}" if neighbours else ",".join(map(str, layers))


def _row(task: SwapTask, name: str, found: Document) -> SwapRow | None:
    when = f"{found.stamp.date[:10]}, {found.stamp.cpu}"
    same: dict[str, Any] = {"word": task.word, "layers": task.layers, "recorded": when}
    if isinstance(task, OutputErrorTask):
        output = found.strays.get(name)
        return None if output is None else OutputErrorRow(**same, output=output)
    if isinstance(task, CopyTask):
        if (copy := found.copies.get(name)) is None:
            return None
        return CopyRow(**same, seed=task.seed, period=task.period, **msgspec.structs.asdict(copy))
    if (read := found.readings.get(name)) is None:
        return None
    text = found.texts[digest(task.text)]
    labels = text.labels if read.losses else ()
    return ReadingRow(**same, tokens=len(text.labels), total=text.total, labels=labels, **msgspec.structs.asdict(read))


@cache
def recorded() -> Document | None:
    """Return the content of the recorded file; None if the file does not exist."""
    file = resources.files("attention_core").joinpath(RECORDED)
    return from_json(file.read_bytes()) if file.is_file() else None


def from_json(data: bytes) -> Document:
    """Parse the recorded file."""
    return msgspec.json.decode(data, type=Document)


def to_json(stamp: Stamp, found: Iterable[tuple[SwapTask, SwapRow]]) -> bytes:
    """Encode rows as the recorded file, one row per line. Each text needs one row with details."""
    parts: dict[str, dict[str, object]] = {"texts": {}, "readings": {}, "copies": {}, "strays": {}}
    for task, row in found:
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
        each = ",\n".join(f"{json.dumps(name)}: {msgspec.json.encode(row).decode()}" for name, row in rows.items())
        lines.append(f'"{part}": {{\n{each}\n}}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _short(value: float) -> float:
    return float(f"{value:.6g}")
