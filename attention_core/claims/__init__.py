"""Is what the articles say true here? Every file of this folder is one claim, found by walking it.

But for ``claim``, which says what one is, and ``survey``, which counts how all of them come out on many inputs.
"""

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from attention_core.claims.claim import (
    Ask,
    Claim,
    Figure,
    Outcome,
    Place,
    Quantity,
    UntestableError,
    Verdict,
    unbroken,
    written,
)
from attention_core.errors import InputError, nearest
from attention_core.experiments.task import Load, Row, load
from attention_core.inputs.source import Source

__all__ = [
    "Ask",
    "Claim",
    "ClaimTask",
    "Figure",
    "Outcome",
    "Place",
    "Quantity",
    "UntestableError",
    "Verdict",
    "all_claims",
    "chosen",
    "claim",
    "judged",
    "length",
    "run",
    "tasks",
    "unbroken",
    "written",
]

LONGEST = 512
"""Tokens of the longest input a claim is checked on: all of them on twelve heads then take some 20 s on one core."""


@dataclass(frozen=True, kw_only=True)
class ClaimTask:
    """One claim on one input.

    Attributes:
        key: the claim's key.
        source: the input.
        head: the one head looked at, None for all of them.
        longest: the most tokens the source is measured at.
        timed: whether time is measured.
    """

    key: str
    source: Source
    head: int | None
    longest: int
    timed: bool


@cache
def discover() -> dict[str, Claim]:
    """Import every claim's file once and return them by key, in the order of their numbers.

    Raises:
        TypeError: if a file has no ``CLAIM`` or its key is not the file's name.
    """
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name in ("claim", "survey"):
            continue
        claim = getattr(importlib.import_module(f"{__name__}.{info.name}"), "CLAIM", None)
        if not isinstance(claim, Claim) or claim.key != info.name:
            raise TypeError(f"{info.name} must define CLAIM, a Claim whose key is the file's name")
        found[claim.key] = claim
    return dict(sorted(found.items(), key=lambda entry: entry[1].number))


def all_claims() -> tuple[Claim, ...]:
    """Every claim, by number."""
    return tuple(discover().values())


def claim(key: str) -> Claim:
    """The claim with this key.

    Raises:
        InputError: naming the nearest key.
    """
    known = discover()
    if key not in known:
        raise InputError("There is no claim {key!r}. {hint}", key=key[:40], hint=nearest(key[:40], known))
    return known[key]


def chosen(keys: Sequence[str] | None) -> tuple[Claim, ...]:
    """The claims with these keys, by number; all of them for None.

    Raises:
        InputError: if a key is unknown, naming the nearest.
    """
    return all_claims() if keys is None else tuple(sorted(map(claim, dict.fromkeys(keys)), key=lambda c: c.number))


def length(source: Source, load: Load = load, longest: int = LONGEST) -> int:
    """Tokens of an input that claims are checked on: its own, but no more than the longest.

    Raises:
        LabError: if the source cannot be read.
    """
    return min(load(source, None).n, longest)


def tasks(
    source: Source,
    *,
    head: int | None = None,
    load: Load = load,
    keys: Sequence[str] | None = None,
    longest: int = LONGEST,
) -> tuple[ClaimTask, ...]:
    """One task per claim, in the order of their numbers.

    Args:
        source: the input.
        head: the one head looked at, None for all of them.
        load: turns a source into a record.
        keys: the claims; all when None.
        longest: tokens of the input that are looked at, at most.

    Raises:
        LabError: if the source cannot be read, or a key is unknown.
    """
    room = min(source.room(load(source, None)), longest)
    return tuple(ClaimTask(key=c.key, source=source, head=head, longest=room, timed=c.timed) for c in chosen(keys))


def run(task: ClaimTask, *, load: Load = load) -> tuple[Row, ...]:
    """The rows of one claim; each says its ``claim``. ``Claim.judge`` turns them into a verdict.

    Where the claim cannot be judged on this input they are one row, of which ``Claim.judge`` makes that verdict.

    Raises:
        LabError: if the source cannot be read at a length the experiment asks for.
    """
    ask = Ask(source=task.source, head=task.head, longest=task.longest, load=load)
    return tuple({"claim": task.key, **row} for row in claim(task.key).rows(ask))


def judged(rows: Sequence[Row]) -> tuple[Outcome, ...]:
    """What the rows of some claims come to, in the order of the claims' numbers; all rows of a claim must be there."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["claim"]), []).append(row)
    outcomes: list[Outcome] = []
    for key, known in discover().items():
        if key in found:
            numbers, verdict = known.judge(found[key])
            outcomes.append(Outcome(claim=known, rows=tuple(found[key]), numbers=numbers, verdict=verdict))
    return tuple(outcomes)
