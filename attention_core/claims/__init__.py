"""Is what the articles say true here? Every file in ``checks`` is one claim, found by walking that folder.

``claim`` defines what a claim is, ``in_the_model`` is shared by several claims, and ``survey`` counts the verdicts of
all claims on many inputs.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from attention_core.claims import checks
from attention_core.claims.claim import Ask, Claim, Figure, Place, Quantity, UntestableError, Verdict
from attention_core.errors import InputError, nearest
from attention_core.experiments.task import Load, load
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
    "length",
    "run",
    "tasks",
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
        slow: whether a decoder reads the source's text again and again.
    """

    key: str
    source: Source
    head: int | None
    longest: int
    timed: bool
    slow: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one claim on one input.

    Attributes:
        key: the claim's key.
        verdict: what its rule says of the numbers.
        numbers: what the rows come to, by quantity.
        rows: what its experiment found, all of the claim's own frozen dataclass.
        why: why it could not be judged, in place of rows and numbers; None where it was.
    """

    key: str
    verdict: Verdict
    numbers: Mapping[str, float] = field(default_factory=dict)
    rows: tuple[Any, ...] = ()
    why: UntestableError | None = None

    @property
    def claim(self) -> Claim[Any]:
        """The claim."""
        return claim(self.key)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, or why nothing could be; its placeholders as they are."""
        if self.why:
            return (self.why.template,)
        notes = (note.finding for note in self.claim.notes if note.applies(self.numbers))
        return self.claim.sentence(self.numbers), *notes

    @property
    def found(self) -> Mapping[str, object]:
        """What fills the placeholders of ``sentences``."""
        return self.why.fields if self.why else self.claim.found(self.numbers)


@cache
def discover() -> dict[str, Claim]:
    """Import every claim's file once and return them by key, in the order of their numbers.

    Raises:
        TypeError: if a file has no ``CLAIM`` or its key is not the file's name.
    """
    found = {}
    for info in pkgutil.iter_modules(checks.__path__):
        claim = getattr(importlib.import_module(f"{checks.__name__}.{info.name}"), "CLAIM", None)
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
    return tuple(
        ClaimTask(key=c.key, source=source, head=head, longest=room, timed=c.timed, slow=c.reads and source.written)
        for c in chosen(keys)
    )


def run(task: ClaimTask, *, load: Load = load) -> tuple[Outcome, ...]:
    """What came of the task's claim.

    Raises:
        LabError: if the source cannot be read at a length the experiment asks for.
    """
    known = claim(task.key)
    try:
        rows = known.rows(Ask(source=task.source, head=task.head, longest=task.longest, load=load))
    except UntestableError as why:
        return (Outcome(key=task.key, verdict=Verdict.UNTESTABLE, why=why),)
    numbers, verdict = known.judge(rows)
    return (Outcome(key=task.key, verdict=verdict, numbers=numbers, rows=rows),)
