"""The ``Claim`` class: a statement from an article, an experiment on the visitor's input, and a rule that judges it.

The experiment returns rows, numbers are computed from the rows, and the verdict is computed from the numbers. No
outcome is stored in advance.
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
from attention_core.formatting import at_most, format_readable, number
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, TextSource
from attention_core.variant import Paper

DECIMALS = 6
"""Decimals to which an exponent fitted to counts is rounded, so that float noise does not turn 2 into 2.0000000001."""
FLOAT32_TOLERANCE = 1e-6
"""Relative difference of matrices below which a difference counts as float32 rounding."""
MAX_DECODER_TOKENS = 128
"""Maximum number of tokens that a decoder reads for a claim about its predictions; it reads them about a dozen
times."""

Numbers = Mapping[str, float]
"""The values of a claim's quantities, or its thresholds, by name."""
R = TypeVar("R")
"""The row type of a claim's experiment: a frozen dataclass of plain values."""


class UntestableError(InputError):
    """A claim cannot be judged on this input. Raised by ``Claim.measure``.

    Args:
        template: the reason, in one sentence.
        **fields: values for its placeholders. If the input is only too short, ``needs`` is the required number of
            tokens.
    """

    @property
    def needs(self) -> int | None:
        """The number of tokens that would suffice; None if no length would."""
        found = self.fields.get("needs")
        return found if isinstance(found, int) else None


class Verdict(StrEnum):
    """The result of a claim's rule on one input."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold here"
    UNTESTABLE = "not testable on this input"

    @classmethod
    def of_parts(cls, *kept: bool) -> "Verdict":
        """Combine the parts of a claim: ``HOLDS`` if all are true, ``PARTLY`` if some are, else ``FAILS``."""
        return cls.HOLDS if all(kept) else cls.PARTLY if any(kept) else cls.FAILS


@dataclass(frozen=True)
class Quantity:
    """A number that a claim's verdict or finding uses.

    Attributes:
        name: its key in ``Claim.numbers``.
        label: a description in a few words.
        unit: ``"ms"``, ``"nats"``, ``"tokens"``; empty for a ratio or a count.
        digits: significant digits shown.
        bound: whether the finding states it as an upper bound; the number is then rounded up.
    """

    name: str
    label: str
    unit: str = ""
    digits: int = 3
    bound: bool = False

    def format(self, value: float) -> str:
        """Format the number for display, without its unit."""
        return (at_most if self.bound else number)(value, self.digits)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The mapping from attributes of a claim's rows to the axes of its chart. Rows with equal x show their spread.

    Attributes:
        x: attribute on the horizontal axis. Strings give bars, numbers give lines.
        y: attribute on the vertical axis. Rows without a value are left out.
        by: attribute that separates the lines, or the bars at one position; its values are the legend's labels.
        x_title: title of the horizontal axis, with its unit.
        y_title: title of the vertical axis, with its unit.
        kind: lines or bars.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
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
    """A link to the page that shows a claim's subject in full, in terms of query parameters.

    Attributes:
        page: the page's name.
        options: query parameters of the page, by name.
        variants: the variants shown; empty to keep the current selection.
    """

    page: str
    options: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A sentence that replaces a claim's usual finding, or follows it, under a condition.

    Attributes:
        finding: the sentence, with the quantities as placeholders.
        applies: the condition: ``numbers -> bool``.
    """

    finding: str
    applies: Callable[[Numbers], bool]


@dataclass(frozen=True, kw_only=True)
class ExperimentInput:
    """The input and settings that an experiment runs on.

    Attributes:
        source: the visitor's input.
        head: index of the only head to measure; None for all heads.
        longest: the largest number of tokens at which the source may be measured.
        load: function that turns a source into a record.
    """

    source: Source
    head: int | None
    longest: int
    load: Load

    @property
    def own_length(self) -> int:
        """The source's own number of tokens, at most ``longest``.

        Raises:
            LabError: if the source cannot be read.
        """
        return min(self.load(self.source, None).n, self.longest)

    @property
    def text(self) -> str:
        """The text of a text source.

        Raises:
            UntestableError: if the source is not a text.
        """
        if not isinstance(self.source, TextSource):
            raise UntestableError("This claim is about what a model says of a text; choose a text.")
        return self.source.text

    @property
    def decoder_token_count(self) -> int:
        """The number of tokens that the decoder reads.

        At most ``MAX_DECODER_TOKENS``, and at most ``longest`` if that cuts the text.

        Raises:
            UntestableError: if the source is not a text.
            LabError: if the text is empty.
        """
        text, whole = self.text, self.load(self.source, None).n  # another model may count differently
        return len(
            swap.text_tokens(
                text, tokens=min(MAX_DECODER_TOKENS, self.longest) if self.longest < whole else MAX_DECODER_TOKENS
            ).ids
        )

    def record(self, tokens: int | None = None) -> QKV:
        """Return the measured heads, ``[H, n, d]``, at the source's own length (at most ``longest``) or at ``tokens``.

        Raises:
            LabError: if the source cannot be read at this length.
        """
        return self.source.at_length(tokens or self.own_length, self.longest, self.load).of_head(self.head)

    def rows_of_selected_heads(self, rows: Iterable[H]) -> list[H]:
        """Return the rows of the measured heads from an experiment that measures all heads."""
        return [row for row in rows if self.head in (None, row.head)]

    def by_head(self, values: Tensor) -> list[tuple[int, float]]:
        """Pair the values of the measured heads, ``[H]``, with the heads' indices."""
        return list(enumerate(values.tolist(), self.head or 0))


@dataclass(frozen=True, kw_only=True)
class Claim(Generic[R]):
    """A claim and how it is checked.

    Attributes:
        key: its name in links and on the command line; equal to the module's name.
        number: its position in the list.
        statement: the claim in plain words.
        source: the article or paper that makes the claim.
        experiment: what is done to the input, in one sentence.
        rule: when the claim holds, holds partly, or fails, in one sentence with the ``bounds`` as placeholders.
        bounds: the rule's thresholds by name.
        place: link to the page that shows the subject in full; None if no page does.
        finding: what was found, in one sentence with the quantities as placeholders.
        quantities: the numbers that it is judged by, the most important first.
        figure: the chart of its rows.
        measure: runs the experiment: ``inputs -> rows``, all of one frozen dataclass. Random seeds depend on ``inputs``
            only.
        numbers: summarizes rows: ``rows -> {quantity's name: value}``.
        verdict: applies the rule: ``(numbers, bounds) -> verdict``.
        cases: findings for cases that the usual sentence does not fit; the first that applies is used.
        notes: sentences after the finding; each one that applies is shown.
        needs: the smallest number of tokens on which it can be judged, for example enough for 64 landmarks.
        noncausal_method: name of a method that it compares with softmax and that cannot be causal, or empty. The claim
            is then untestable on a causal model whose unmasked attention puts much weight on the future.
        measures_lengths: whether it is measured at growing lengths, up to the longest available for the source.
            ``needs`` then applies to that longest length, because a synthetic input's own length does not matter.
        theorem: why mathematics allows only one verdict, in one sentence; empty for a claim whose verdict depends on
            the input.
        counterexample: an input whose verdict differs from the verdict on all inputs of the survey, in one sentence. A
            test runs the claim on each such input. Empty for a theorem, or if no such input is known.
        timed: whether it measures time, so that its numbers differ from run to run.
        uses_decoder: whether a decoder reads the source's text many times, which is slow. The claim then needs a text,
            and ``needs`` counts tokens of that decoder.
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
    measure: Callable[[ExperimentInput], Iterable[R]]
    numbers: Callable[[Sequence[R]], Numbers]
    verdict: Callable[[Numbers, Numbers], Verdict]
    bounds: Numbers = field(default_factory=dict)
    place: Place | None = None
    cases: tuple[Case, ...] = ()
    notes: tuple[Case, ...] = ()
    needs: int = 2
    noncausal_method: str = ""
    measures_lengths: bool = False
    theorem: str = ""
    counterexample: str = ""
    timed: bool = False
    uses_decoder: bool = False

    def rows(self, inputs: ExperimentInput) -> tuple[R, ...]:
        """Run the experiment and return its rows.

        Raises:
            UntestableError: if the claim cannot be judged on this input.
            LabError: if the source cannot be read at a length that the experiment needs.
        """
        if self.noncausal_method:
            check_low_future_mass(inputs.record(), self.noncausal_method)
        n = (
            inputs.decoder_token_count
            if self.uses_decoder
            else inputs.longest
            if self.measures_lengths
            else inputs.own_length
        )
        if n < self.needs:
            raise UntestableError("Needs at least {needs} tokens; this input has {n}.", needs=self.needs, n=n)
        return tuple(self.measure(inputs))

    def judge(self, rows: Sequence[R]) -> tuple[Numbers, Verdict]:
        """Return the numbers computed from the rows, and the verdict of the rule on them."""
        numbers = self.numbers(rows)
        return numbers, self.verdict(numbers, self.bounds)

    def sentence(self, numbers: Numbers) -> str:
        """Return the finding that fits these numbers; placeholders are not filled."""
        return next((case.finding for case in self.cases if case.applies(numbers)), self.finding)

    def formatted_numbers(self, numbers: Numbers) -> dict[str, str]:
        """Format the quantities without units, as values for the placeholders of ``sentence``."""
        return {each.name: each.format(numbers[each.name]) for each in self.quantities}

    def thresholds(self) -> dict[str, str]:
        """Format the bounds, as values for the placeholders of ``rule``."""
        return {name: format_readable(bound, None) for name, bound in self.bounds.items()}


FUTURE = Quantity("future", "weight that the input itself hides", "%")
"""Share of unmasked attention mass, in per cent, on keys after the query, for a causal model; 0 for a bidirectional
input."""
READ_BOTH_WAYS = Case(
    finding="This model writes from left to right, but was read both ways here: {future}% of that attention lies on "
    "the future, which it never sees.",
    applies=lambda numbers: numbers[FUTURE.name] > 0,
)
MOST_HIDDEN = 10
"""Largest ``FUTURE``, in per cent, at which unmasked attention is still close to causal attention. Trained heads have
up to 64; uniform attention would have 50."""


def future(qkv: QKV) -> float:
    """Return ``FUTURE`` of this record."""
    return 100 * future_share(qkv, head=None) if qkv.causal else 0.0


def check_low_future_mass(qkv: QKV, method: str) -> None:
    """Check that a causal model attends little to the future when unmasked, so that a non-causal method can be judged.

    Args:
        qkv: the record; a bidirectional one always passes.
        method: the name of the non-causal method.

    Raises:
        UntestableError: if more than ``MOST_HIDDEN`` per cent of the attention mass lies on the future.
    """
    hidden = future(qkv)
    if hidden > MOST_HIDDEN:
        raise UntestableError(
            "{method} cannot hide the future, as this model does: read both ways, {hidden}% of its attention would "
            "lie there, where it never looks (up to {most}% would be let pass). Choose a model that reads both ways.",
            method=method,
            hidden=format_readable(hidden, 3),
            most=MOST_HIDDEN,
        )


def check_not_uniform(uniform: Tensor) -> None:
    """Check that attention is not uniform in every head; closeness to uniform attention would show nothing.

    Args:
        uniform: the relative error of uniform attention's matrix, one value per head.

    Raises:
        UntestableError: if all heads are uniform, up to float32 rounding.
    """
    if (uniform < FLOAT32_TOLERANCE).all():
        raise UntestableError(
            "All tokens of this input weigh the same, so that every method agrees; choose one with sharper attention."
        )
