"""The ``Claim`` class: a statement from an article, an experiment that tests it on an input, and a rule that judges it.

The experiment returns rows, numbers are computed from the rows, and the verdict is computed from the numbers. No
outcome is stored in advance.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor

from attention_core.claims.claim_parts import Figure, Place, Quantity, UntestableError
from attention_core.claims.conditions import FUTURE, MEASURED_UNMASKED, check_low_future_mass
from attention_core.claims.rule import Margin, Numbers, Rule, Verdict
from attention_core.experiments import swap
from attention_core.experiments.task import H, Load
from attention_core.formatting import format_readable
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, TextSource
from attention_core.variant import Paper

MAX_DECODER_TOKENS = 128
"""Maximum number of tokens that the decoder, a language model, reads for a claim about its predictions; it reads them
about a dozen times."""
_FROM_MODULE: Any = None
"""Default of a function of a claim (see ``Claim``): the function of the same name in the claim's module is used."""
R = TypeVar("R")
"""The row type of a claim's experiment: a frozen dataclass of plain values."""


@dataclass(frozen=True, kw_only=True)
class ExperimentInput:
    """The input and settings that an experiment runs on.

    Attributes:
        source: the visitor's input.
        head: index of the only head to measure; None for all heads.
        longest: the largest number of tokens at which the source may be measured.
        load: function that turns a source into its ``QKV``. It raises ``LabError`` if the source cannot be read.
    """

    source: Source
    head: int | None
    longest: int
    load: Load

    @property
    def own_length(self) -> int:
        """The source's own number of tokens, at most ``longest``."""
        return min(self.load(self.source, None).n, self.longest)

    @property
    def text(self) -> str:
        """The text that the visitor chose.

        Raises:
            UntestableError: if the source is not a text.
        """
        if not isinstance(self.source, TextSource):
            raise UntestableError("The check needs a text, which a language model reads. Choose a text.")
        return self.source.text

    @property
    def decoder_token_count(self) -> int:
        """The number of tokens that the decoder reads.

        At most ``MAX_DECODER_TOKENS``. If the text is longer than ``longest``, also at most ``longest``.

        Raises:
            UntestableError: if the source is not a text.
            LabError: if the text is empty.
        """
        # The decoder has a tokenizer of its own, so its number of tokens can differ from the input's.
        text, n = self.text, self.load(self.source, None).n
        return len(
            swap.text_tokens(
                text, tokens=min(MAX_DECODER_TOKENS, self.longest) if self.longest < n else MAX_DECODER_TOKENS
            ).ids
        )

    def record(self, tokens: int | None = None) -> QKV:
        """Return the queries, keys and values of the measured heads, at ``own_length`` or at a number of tokens."""
        return self.source.at_length(tokens or self.own_length, self.longest, self.load).of_head(self.head)

    def rows_of_selected_heads(self, rows: Iterable[H]) -> list[H]:
        """Return the rows of the measured heads from an experiment that measures all heads."""
        return [row for row in rows if self.head in (None, row.head)]

    def head_rows(self, row: Callable[..., R], /, **attributes: object) -> Iterator[R]:
        """Yield one row per measured head.

        Args:
            row: the row type, with an attribute ``head``.
            **attributes: its other attributes. A tensor or list has one value per head; all rows share other values.
        """
        per_head = {
            name: value.tolist() if isinstance(value, Tensor) else value
            for name, value in attributes.items()
            if isinstance(value, Tensor | list)
        }
        for head, value in enumerate(zip(*per_head.values(), strict=True), self.head or 0):
            yield row(**{**attributes, **dict(zip(per_head, value, strict=True))}, head=head)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and how it is checked.

    ``measure`` and ``numbers`` are by default the functions of these names in the claim's module. Discovery sets them,
    and also the key, the subject and the number.

    Attributes:
        statement: the claim in plain words.
        short: the statement in a few words, to name the claim in a sentence.
        source: the article or paper that makes the claim.
        experiment: what is done to the input.
        measure: runs the experiment: ``inputs -> rows``, all of one frozen dataclass. Random seeds depend on ``inputs``
            only.
        numbers: summarizes rows: ``rows -> {quantity's name: value}``.
        rule: when the claim holds and when it holds partly, with the ``bounds`` as placeholders.
        verdict: the same rule as a function, ``(numbers, bounds) -> verdict``.
        finding: the result and its reason, in one or two sentences, with the quantities as placeholders.
        details: further sentences, which follow the finding where there is room for them; may be empty.
        quantities: the numbers by which the claim is judged, the most important first.
        figure: the chart of the experiment's rows.
        bounds: the rule's thresholds by name.
        place: link to the page that shows the subject in full; None if no page does.
        needs: the smallest number of tokens on which the claim can be judged, for example enough for 64 landmarks.
        noncausal_method: name of the method that this claim compares with softmax and that has no causal form; may be
            empty. With a name, the claim is untestable on a causal model whose unmasked attention puts much weight on
            the future.
        measures_lengths: whether the experiment uses growing lengths, up to the longest available for the source.
            ``needs`` then applies to that longest length, because a synthetic input's own length does not matter.
        theorem: why mathematics allows only one verdict; empty for a claim whose verdict depends on the input.
        counterexample: an input whose verdict differs from the verdict on all inputs of the survey, in one sentence. A
            test runs the claim on each such input. Empty for a theorem, or if no such input is known.
        timed: whether the experiment measures time, so that the numbers differ from run to run.
        uses_decoder: whether a decoder reads the source's text many times, which is slow. The claim then needs a text,
            and ``needs`` counts tokens of that decoder.
        uses_image: whether the experiment needs an image and uses the whole image.
        key: the claim's name in links and on the command line, which is the module's name.
        subject: one of ``claims.SUBJECTS``, such as "sparse": the folder of the claim's module.
        number: the claim's position on the Claims page.
    """

    statement: str
    short: str
    source: Paper
    experiment: str
    measure: Callable[[ExperimentInput], Iterable[Any]] = _FROM_MODULE
    numbers: Callable[[Sequence[Any]], Numbers] = _FROM_MODULE
    rule: str
    verdict: Rule
    finding: str
    quantities: tuple[Quantity, ...]
    figure: Figure
    details: str = ""
    bounds: Numbers = field(default_factory=dict)
    place: Place | None = None
    needs: int = 2
    noncausal_method: str = ""
    measures_lengths: bool = False
    theorem: str = ""
    counterexample: str = ""
    timed: bool = False
    uses_decoder: bool = False
    uses_image: bool = False
    key: str = ""
    subject: str = ""
    number: int = 0

    @property
    def is_recorded(self) -> bool:
        """True if the claim is about trained models and judged on their recorded runs without an input."""
        return self.subject == "trained"

    def rows(self, inputs: ExperimentInput) -> tuple[Any, ...]:
        """Run the experiment and return its rows.

        Raises:
            UntestableError: if the claim cannot be judged on this input.
            LabError: if the source cannot be read at a length that the experiment needs.
        """
        if self.is_recorded:
            return tuple(self.measure(inputs))
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
            raise UntestableError("At least {needs} tokens are needed, but this input has {n}.", needs=self.needs, n=n)
        return tuple(self.measure(inputs))

    def lacks_tokens(self, n: int, longest: int) -> bool:
        """Return whether an input of n tokens is too short, if it can be measured at up to ``longest`` tokens.

        For a claim about a decoder, which has a tokenizer of its own, the answer is False.
        """
        return not self.uses_decoder and (longest if self.measures_lengths else min(n, longest)) < self.needs

    def judge(self, rows: Sequence[Any]) -> tuple[Numbers, Verdict]:
        """Return the numbers computed from the rows, and the verdict of the rule on them."""
        numbers = self.numbers(rows)
        return numbers, self.verdict(numbers, self.bounds)

    def conditions(self, numbers: Numbers) -> list[tuple[bool, Margin]]:
        """Return each condition of the verdict "holds": whether it is met, the number and its threshold.

        If there is only one such condition, the conditions of the verdict "holds partly" follow.
        """
        needed = self.verdict.needed
        conditions = dict.fromkeys([*needed, *(self.verdict.partly or ())]) if len(needed) == 1 else needed
        return [(each.holds(numbers, self.bounds), each.margin(numbers, self.bounds)) for each in conditions]

    def sentences(self, numbers: Numbers) -> tuple[str, ...]:
        """Return the finding, the details and, if a causal model was measured without its mask, a note on this.

        Placeholders are not filled.
        """
        note = MEASURED_UNMASKED if numbers.get(FUTURE.name, 0) > 0 else ""
        return self.finding, *filter(None, (self.details, note))

    def formatted_numbers(self, numbers: Numbers) -> dict[str, str]:
        """Format the quantities without units, as values for the placeholders of ``sentences``."""
        return {each.name: each.format(numbers[each.name]) for each in self.quantities}

    def thresholds(self) -> dict[str, str]:
        """Format the bounds, as values for the placeholders of ``rule``; bounds of shares become percentages."""
        shares = {each.name for each in self.quantities if each.share}
        in_percent = {condition.threshold for condition in self.verdict if condition.quantity in shares}
        return {
            name: f"{format_readable(100 * bound, None)}%" if name in in_percent else format_readable(bound, None)
            for name, bound in self.bounds.items()
        }
