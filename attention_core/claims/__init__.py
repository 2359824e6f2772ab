"""Claims: statements from articles about attention, each checked on an input by an experiment and a rule.

Each file below ``checks`` defines one claim about an input, and each file below ``trained`` one claim about trained
models. ``discover`` finds these files. The module ``claim`` defines the ``Claim`` class. Several claims share the
code in ``model_experiments`` and ``trained_models``. ``survey`` counts the verdicts of all claims on many inputs.

Example:
    >>> import torch
    >>> import attention_core as ac
    >>> source = ac.inputs.TensorSource.of(*torch.randn(3, 2, 32, 8))
    >>> [task] = ac.claims.tasks(source, keys=["memory_quadruples"])
    >>> [outcome] = ac.claims.run(task)
    >>> print(outcome.verdict)
    holds
    >>> [each.key for each in ac.claims.chosen(["landmark_inverse", "memory_quadruples"])], ac.claims.length(source)
    (['memory_quadruples', 'landmark_inverse'], 32)
    >>> len(ac.claims.all_claims()) > 30, len(ac.claims.trained_claims()), ac.claims.claim("linear_pairs").is_recorded
    (True, 7, True)
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType
from typing import Any

from attention_core.claims import checks, trained
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError
from attention_core.claims.rule import Margin, Verdict
from attention_core.errors import InputError, LabError, name_hint
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source

__all__ = [
    "SUBJECTS",
    "Axis",
    "Claim",
    "ClaimTask",
    "ExperimentInput",
    "Figure",
    "Margin",
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
    "trained_claims",
]

SUBJECTS = ("softmax", "sparse", "low_rank", "linear", "delta", "model", "vision", "trained")
"""The folders of the claims' files, in the order of the Claims page."""
LONGEST = 512
"""Maximum tokens of an input for claims: all claims on twelve heads then take about 20 s on one core."""


@dataclass(frozen=True, kw_only=True)
class ClaimTask:
    """One claim to check on one input.

    Attributes:
        key: the claim's key.
        timed: whether the claim measures time.
        runs_decoder: whether a language model (decoder) reads the source's text many times, which is slow; False if the
            text is too short for the claim.
    """

    key: str
    source: Source
    head: int | None
    longest: int
    timed: bool
    runs_decoder: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of checking one claim on one input.

    Attributes:
        key: the claim's key.
        verdict: the verdict of the claim's rule on the numbers.
        numbers: the values of the claim's quantities by name, computed from the rows.
        rows: the rows of the claim's experiment, objects of a frozen dataclass that the claim's module defines.
        untestable_reason: the reason why the claim is untestable, with no rows or numbers; None if it was judged.
    """

    key: str
    verdict: Verdict
    numbers: Mapping[str, float] = field(default_factory=dict)
    rows: tuple[Any, ...] = ()
    untestable_reason: UntestableError | None = None

    @property
    def claim(self) -> Claim:
        """The claim with this key."""
        return claim(self.key)

    @property
    def heads(self) -> int:
        """The number of heads that the rows measure; 0 if a row does not belong to one head."""
        return len({row.head for row in self.rows if getattr(row, "head", None) is not None})

    @property
    def has_log_values(self) -> bool:
        """True if the figure's vertical axis is logarithmic: for bars, only if their sizes differ more than tenfold."""
        figure = self.claim.figure
        sizes = [size for row in self.rows if (size := getattr(row, figure.y.attribute) or 0) > 0]
        return figure.y.log and (figure.kind != "bars" or max(sizes, default=0) > 10 * min(sizes, default=0))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The claim's sentences for these numbers, or why it is untestable; placeholders are not filled."""
        if self.untestable_reason:
            return (self.untestable_reason.template,)
        return self.claim.sentences(self.numbers)

    @property
    def formatted_numbers(self) -> Mapping[str, object]:
        """The values for the placeholders of ``sentences``."""
        return self.untestable_reason.fields if self.untestable_reason else self.claim.formatted_numbers(self.numbers)


@cache
def discover() -> dict[str, Claim]:
    """Import all claim files once and return the claims by key: those about inputs, then those about trained models.

    Both groups are ordered by subject, as on the Claims page. Within a subject, claims from the same source are
    adjacent, and sources with more claims come first. Otherwise, the claims are in the order of their files.

    Raises:
        TypeError: if a file does not define ``CLAIM``.
        AttributeError: if neither ``CLAIM`` nor the module has a function ``measure`` or ``numbers``.
    """
    ordered = [*_ordered(checks), *_ordered(trained)]
    return {claim.key: replace(claim, number=number) for number, claim in enumerate(ordered, 1)}


def _ordered(package: ModuleType) -> list[Claim]:
    """Return the claims of a package's files in the order of the Claims page."""
    result = []
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if info.ispkg:
            continue
        module = importlib.import_module(info.name)
        claim = getattr(module, "CLAIM", None)
        if not isinstance(claim, Claim):
            raise TypeError(f"{info.name} must define CLAIM, a Claim")
        *_package, subject, key = info.name.split(".")
        measure, numbers = (getattr(claim, name) or getattr(module, name, None) for name in ("measure", "numbers"))
        if measure is None or numbers is None:
            raise TypeError(f"{info.name} must define measure and numbers")
        result.append(replace(claim, key=key, subject=subject, measure=measure, numbers=numbers))
    sources = [(claim.subject, claim.source) for claim in result]

    def position(claim: Claim) -> tuple[int, int, int]:
        source = claim.subject, claim.source
        return SUBJECTS.index(claim.subject), -sources.count(source), sources.index(source)

    return sorted(result, key=position)


def all_claims() -> tuple[Claim, ...]:
    """Return every claim about an input, ordered by number."""
    return tuple(claim for claim in discover().values() if not claim.is_recorded)


def trained_claims() -> tuple[Claim, ...]:
    """Return every claim about trained models, ordered by number."""
    return tuple(claim for claim in discover().values() if claim.is_recorded)


def claim(key: str) -> Claim:
    """Return the claim with this key.

    Raises:
        InputError: if the key is unknown; the message suggests the nearest key.
    """
    claims = discover()
    if key not in claims:
        raise InputError("There is no claim {key!r}. {hint}", key=key[:40], hint=name_hint(key[:40], claims))
    return claims[key]


def chosen(keys: str | Sequence[str] | None) -> tuple[Claim, ...]:
    """Return the claims with one key or several, ordered by number; for None, return all claims about an input.

    Raises:
        InputError: if a key is unknown; the message suggests the nearest key.
    """
    if keys is None:
        return all_claims()
    several = [keys] if isinstance(keys, str) else dict.fromkeys(keys)
    return tuple(sorted(map(claim, several), key=lambda c: c.number))


def length(source: Source, load: Load = load, longest: int = LONGEST) -> int:
    """Return the number of tokens of an input that claims are checked on: all of them, but at most ``longest``."""
    return min(load(source, None).n, longest)


def tasks(
    source: Source,
    *,
    head: int | None = None,
    load: Load = load,
    keys: str | Sequence[str] | None = None,
    longest: int = LONGEST,
) -> tuple[ClaimTask, ...]:
    """Return one task per claim, ordered by the claims' numbers.

    Args:
        source: the input.
        head: index of the only head to measure; None for all heads.
        load: function that turns a source into its ``QKV``.
        keys: the key of the claim to check, or several keys; None for all claims about an input.
        longest: the largest number of tokens of the input to use.

    Raises:
        InputError: if a key is unknown, or the head does not exist.
    """
    record = load(source, None)
    record.check_head(head)
    max_tokens = min(source.max_tokens(record), longest)
    inputs = ExperimentInput(source=source, head=head, longest=max_tokens, load=load)
    return tuple(
        ClaimTask(
            key=claim_.key,
            source=source,
            head=head,
            longest=max_tokens,
            timed=claim_.timed,
            runs_decoder=claim_.uses_decoder and source.is_text and _is_long_enough(claim_, inputs),
        )
        for claim_ in chosen(keys)
    )


def _is_long_enough(claim: Claim, inputs: ExperimentInput) -> bool:
    """Return whether a text has the tokens that a claim about a decoder needs; True if the decoder cannot be loaded."""
    try:
        return inputs.decoder_token_count >= claim.needs
    except LabError:
        return True


def run(task: ClaimTask, *, load: Load = load) -> tuple[Outcome, ...]:
    """Check the task's claim and return its outcome."""
    claim_ = claim(task.key)
    try:
        rows = claim_.rows(ExperimentInput(source=task.source, head=task.head, longest=task.longest, load=load))
    except UntestableError as reason:
        return (Outcome(key=task.key, verdict=Verdict.UNTESTABLE, untestable_reason=reason),)
    numbers, verdict = claim_.judge(rows)
    return (Outcome(key=task.key, verdict=verdict, numbers=numbers, rows=rows),)
