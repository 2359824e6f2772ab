"""The parts of a claim: measured quantities, a figure and a link to a page."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from attention_core.claims.rule import Numbers
from attention_core.errors import InputError
from attention_core.formatting import at_most, number

MEASURED_SETTING = re.compile(r"~\w+~\{\w+\}")
"""A setting in a link whose value is a number of the claim."""


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


@dataclass(frozen=True)
class Quantity:
    """A number that a claim's verdict or finding uses.

    Attributes:
        name: its key in ``Claim.numbers``.
        label: a description in a few words.
        unit: ``"ms"``, ``"nats"``, ``"tokens"``; empty for a ratio or a count.
        digits: significant digits shown.
        bound: whether the finding states it as an upper bound; the number is then rounded up.
        share: whether it is a share from 0 to 1, or a relative error, which texts show as a percentage.
        of_heads: whether it is the per cent of the measured heads for which something is true.
        total: name of the quantity with the total, if this quantity counts a part, such as the variants that leak.
    """

    name: str
    label: str
    unit: str = ""
    digits: int = 3
    bound: bool = False
    share: bool = False
    of_heads: bool = False
    total: str = ""

    def format(self, value: float) -> str:
        """Format the number for display, without its unit; a share becomes a percentage."""
        return f"{self.plain(100 * value)}%" if self.share else self.plain(value)

    def plain(self, value: float) -> str:
        """Format the number itself, for files."""
        return (at_most if self.bound else number)(value, self.digits)


def values(rows: Iterable[object], name: str, **where: object) -> list[float]:
    """Return the attribute ``name`` of the rows whose other attributes equal ``where``; None values are left out."""
    found = (getattr(row, name) for row in rows if all(getattr(row, key) == value for key, value in where.items()))
    return [value for value in found if value is not None]


@dataclass(frozen=True)
class Axis:
    """One axis of a claim's chart.

    Attributes:
        attribute: the attribute of the claim's rows that it shows.
        title: its title, with its unit.
        log: whether it is logarithmic.
    """

    attribute: str
    title: str
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The mapping from attributes of a claim's rows to the axes of its chart. Rows with equal x show their spread.

    Attributes:
        x: horizontal axis, with strings for bars and numbers for lines and points.
        y: vertical axis. Rows without a value are left out.
        by: attribute that separates the lines, or the bars at one position; its values are the legend's labels.
        kind: lines, bars, or points that no line joins, for positions without an order such as heads.
        percent: whether ``y`` is a share from 0 to 1, which the chart shows as a percentage.
        subject: the value of ``x`` that the claim is about; a small chart of bars marks it.
        main: the only values of ``by`` that a small chart shows; empty for all values.
        main_title: title of ``y`` in the small chart; empty for the same title.
    """

    x: Axis
    y: Axis
    by: str
    kind: Literal["lines", "bars", "points"] = "lines"
    percent: bool = False
    subject: str = ""
    main: tuple[str, ...] = ()
    main_title: str = ""


@dataclass(frozen=True)
class Place:
    """A link to the page that shows a claim's subject in full, in terms of query parameters.

    Attributes:
        page: the page's name.
        options: query parameters of the page, by name.
        variants: the variants shown; empty to keep the current selection.

    A setting of a variant may be a number of the claim, such as ``nystrom~landmarks~{landmarks}``.
    """

    page: str
    options: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ()

    def with_numbers(self, numbers: Numbers) -> "Place":
        """Return the place with the claim's numbers as settings; without numbers, these settings keep their default."""

        def fill(word: str) -> str:
            return word.format_map(numbers) if numbers else MEASURED_SETTING.sub("", word)

        options = {name: fill(word) for name, word in self.options.items()}
        return Place(self.page, options, tuple(map(fill, self.variants)))
