"""What a claim is: a statement from an article, an experiment on the visitor's input, and the rule that judges it.

A claim's verdict is a function of its numbers, its numbers a function of the rows its experiment found: nothing about
the outcome is written down beforehand.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from torch import Tensor

from attention_core.analysis.matrix.future import future_share
from attention_core.errors import InputError
from attention_core.experiments import swap
from attention_core.experiments.task import H, Load
from attention_core.formatting import at_most, number, written
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, TextSource
from attention_core.variant import Paper

DECIMALS = 6
"""Decimals kept of what a fit makes of counts, beyond which is rounding: two stays two."""
EVEN = 1e-6
"""Errors of matrices below this are float32's rounding."""
READ = 128
"""Tokens of a text that a decoder reads, at most, for a claim about what it says of it: it reads them a dozen times."""

Numbers = Mapping[str, float]
"""What a claim's rows come to, or its thresholds, by name."""
R = TypeVar("R")
"""What a claim's experiment finds: a frozen dataclass of plain values."""


class UntestableError(InputError):
    """There is nothing on this input by which the claim could be judged: what ``Claim.measure`` raises to say so.

    Args:
        template: why, in one sentence.
        **fields: its values. Where the input is only too short, ``needs`` says how many tokens would do.
    """

    @property
    def needs(self) -> int | None:
        """Tokens that would do; None where no length would."""
        found = self.fields.get("needs")
        return found if isinstance(found, int) else None


class Verdict(StrEnum):
    """What the numbers say of a claim, on this input."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold here"
    UNTESTABLE = "not testable on this input"

    @classmethod
    def of_parts(cls, *kept: bool) -> "Verdict":
        """Of a claim in several parts: holds where all are so, partly where some are."""
        return cls.HOLDS if all(kept) else cls.PARTLY if any(kept) else cls.FAILS


@dataclass(frozen=True)
class Quantity:
    """A number a claim is judged by.

    Attributes:
        name: as ``Claim.numbers`` names it.
        label: what it is, in a few words.
        unit: ``"ms"``, ``"nats"``, ``"tokens"``; empty for a ratio or a count.
        digits: significant digits shown.
        bound: whether its sentence states it as an upper bound, which is then rounded up.
    """

    name: str
    label: str
    unit: str = ""
    digits: int = 3
    bound: bool = False

    def written(self, value: float) -> str:
        """Return the number for reading, without its unit."""
        return (at_most if self.bound else number)(value, self.digits)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """How a claim's rows become a picture: which attributes stand on which axis. Rows at one place show their spread.

    Attributes:
        x: attribute on the horizontal axis; words make bars, numbers make lines.
        y: attribute on the vertical axis; rows that have none are left out.
        by: attribute that tells the lines (or the bars at one place) apart; its words name them.
        x_title: of the horizontal axis, with its unit.
        y_title: of the vertical axis, with its unit.
        kind: lines or bars.
        log_x: whether equal ratios are equal distances, horizontally.
        log_y: the same, vertically.
    """

    x: str
    y: str
    by: str
    x_title: str
    y_title: str
    kind: Literal["lines", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Place:
    """Where a claim can be seen at large, in the words of addresses.

    Attributes:
        page: the page's name.
        options: the page's own choices, by name.
        variants: the variants shown; empty for those that are chosen anyway.
    """

    page: str
    options: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is to be said in place of a claim's usual finding, or after it.

    Attributes:
        finding: the sentence, with the quantities as placeholders.
        applies: whether it fits: ``numbers -> bool``.
    """

    finding: str
    applies: Callable[[Numbers], bool]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What an experiment is run on.

    Attributes:
        source: the visitor's input.
        head: the one head looked at, None for all of them.
        longest: the most tokens the source may be measured at.
        load: turns a source into a record.
    """

    source: Source
    head: int | None
    longest: int
    load: Load

    @property
    def own(self) -> int:
        """Tokens of the source as it is, at most ``longest``.

        Raises:
            LabError: if the source cannot be read.
        """
        return min(self.load(self.source, None).n, self.longest)

    @property
    def text(self) -> str:
        """The text that the source is.

        Raises:
            UntestableError: if it is none.
        """
        if not isinstance(self.source, TextSource):
            raise UntestableError("This claim is about what a model says of a text; choose a text.")
        return self.source.text

    @property
    def decoded(self) -> int:
        """Tokens of the text, at most ``READ``, as the decoder reads them; no more than ``longest`` where that cuts it.

        Raises:
            LabError: if there is no text, or it holds nothing.
        """
        text, whole = self.text, self.load(self.source, None).n  # as another model may count them
        return len(swap.text_tokens(text, tokens=min(READ, self.longest) if self.longest < whole else READ).ids)

    def record(self, tokens: int | None = None) -> QKV:
        """The heads looked at, ``[H, n, d]``, at the source's own length (at most ``longest``) or another.

        Raises:
            LabError: if the source cannot be read at this length.
        """
        return self.source.at_length(tokens or self.own, self.longest, self.load).of_head(self.head)

    def seen(self, rows: Iterable[H]) -> list[H]:
        """The rows of the heads looked at, from an experiment that measures all of them."""
        return [row for row in rows if self.head in (None, row.head)]

    def by_head(self, values: Tensor) -> list[tuple[int, float]]:
        """Numbers of the heads looked at, ``[H]``, each beside its head's own number."""
        return list(enumerate(values.tolist(), self.head or 0))


@dataclass(frozen=True, kw_only=True)
class Claim(Generic[R]):
    """A claim and how it is checked.

    Attributes:
        key: its name in links and on the command line; the module's name.
        number: its place in the list.
        statement: what is claimed, in plain words.
        source: where it is claimed.
        experiment: what is done to the input, in one sentence.
        rule: when it holds, holds partly, or does not, in one sentence with the ``bounds`` as placeholders.
        bounds: the rule's thresholds by name.
        place: where it can be seen at large; None where nowhere.
        finding: what was found, in one sentence with the quantities as placeholders.
        quantities: the numbers it is judged by, the most telling first.
        figure: the picture of its rows.
        measure: runs the experiment: ``ask -> rows``, all of one frozen dataclass; seeded by what is asked and by
            nothing else.
        numbers: condenses rows: ``rows -> {quantity's name: value}``.
        verdict: applies the rule: ``(numbers, bounds) -> verdict``.
        cases: what was found where the usual sentence would not fit; the first that applies counts.
        notes: what is said after the finding, each of them that applies.
        needs: tokens without which it cannot be judged: as many as make what it names, 64 landmarks say, more than a
            word.
        unmasked: the method it compares with softmax and which cannot hide the future, so that there is nothing to
            judge where a causal model looks ahead once its mask is off; empty where there is none.
        grows: whether it is measured at growing lengths, up to the longest that the source can be had at: those have to
            reach ``needs``, as a synthetic input's own length decides nothing then.
        theorem: why mathematics lets it come out in one way only, wherever it can be judged, in one sentence; empty for
            a claim that inputs decide.
        otherwise: an input on which the verdict is another than on all inputs of the survey, in one sentence; each has
            a test that runs the claim on that input. Empty for a theorem, or where no such input is known.
        timed: whether it measures time, so that its numbers differ from run to run.
        reads: whether it lets a decoder read the source's text, again and again, which takes a while: it can be judged
            on a text alone, and ``needs`` are tokens of that decoder.
    """

    key: str
    number: int
    statement: str
    source: Paper
    experiment: str
    rule: str
    finding: str
    quantities: tuple[Quantity, ...]
    figure: Figure
    measure: Callable[[Ask], Iterable[R]]
    numbers: Callable[[Sequence[R]], Numbers]
    verdict: Callable[[Numbers, Numbers], Verdict]
    bounds: Numbers = field(default_factory=dict)
    place: Place | None = None
    cases: tuple[Case, ...] = ()
    notes: tuple[Case, ...] = ()
    needs: int = 2
    unmasked: str = ""
    grows: bool = False
    theorem: str = ""
    otherwise: str = ""
    timed: bool = False
    reads: bool = False

    def rows(self, ask: Ask) -> tuple[R, ...]:
        """What its experiment finds.

        Raises:
            UntestableError: if it cannot be judged on this input.
            LabError: if the source cannot be read at a length the experiment asks for.
        """
        if self.unmasked:
            check_seen(ask.record(), self.unmasked)
        n = ask.decoded if self.reads else ask.longest if self.grows else ask.own
        if n < self.needs:
            raise UntestableError("Needs at least {needs} tokens; this input has {n}.", needs=self.needs, n=n)
        return tuple(self.measure(ask))

    def judge(self, rows: Sequence[R]) -> tuple[Numbers, Verdict]:
        """The numbers that its rows come to, and the verdict its rule passes on them."""
        numbers = self.numbers(rows)
        return numbers, self.verdict(numbers, self.bounds)

    def sentence(self, numbers: Numbers) -> str:
        """The finding that fits these numbers, its placeholders as they are."""
        return next((case.finding for case in self.cases if case.applies(numbers)), self.finding)

    def found(self, numbers: Numbers) -> dict[str, str]:
        """The quantities as they are written, without units: what fills the placeholders of ``sentence``."""
        return {each.name: each.written(numbers[each.name]) for each in self.quantities}

    def thresholds(self) -> dict[str, str]:
        """The bounds as they are written: what fills the placeholders of ``rule``."""
        return {name: written(bound, None) for name, bound in self.bounds.items()}


FUTURE = Quantity("future", "weight that the input itself hides", "%")
"""Per cent of the mass that lies on the future of a model which hides it; 0 where the input reads both ways."""
READ_BOTH_WAYS = Case(
    finding="This model writes from left to right, but was read both ways here: {future}% of that attention lies on "
    "the future, which it never sees.",
    applies=lambda numbers: numbers[FUTURE.name] > 0,
)
MOST_HIDDEN = 10
"""Per cent of ``FUTURE`` up to which attention read both ways still is, nearly, what a causal model does. Trained heads
have up to 64; spread evenly it would be 50."""


def future(qkv: QKV) -> float:
    """``FUTURE`` of this record."""
    return 100 * future_share(qkv, head=None) if qkv.causal else 0.0


def check_seen(qkv: QKV, method: str) -> None:
    """That softmax which hides nothing, and a method that cannot hide anything, is near what a causal model does.

    Args:
        qkv: the record; one that reads both ways always passes.
        method: the method's name.

    Raises:
        UntestableError: if it is not.
    """
    hidden = future(qkv)
    if hidden > MOST_HIDDEN:
        raise UntestableError(
            "{method} cannot hide the future, as this model does: read both ways, {hidden}% of its attention would "
            "lie there, where it never looks (up to {most}% would be let pass). Choose a model that reads both ways.",
            method=method,
            hidden=written(hidden, 3),
            most=MOST_HIDDEN,
        )


def check_uneven(uniform: Tensor) -> None:
    """That attention is not the same everywhere, where closeness to it is to be compared.

    Args:
        uniform: the relative error of uniform attention's matrix, of each head.

    Raises:
        UntestableError: if it is, up to float32's rounding.
    """
    if (uniform < EVEN).all():
        raise UntestableError(
            "All tokens of this input weigh the same, so that every method agrees; choose one with sharper attention."
        )
