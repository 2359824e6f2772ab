"""The points of a sweep as lines on a chart: over the budget, the length, or the cost."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import attention_core as ac
from app.figures.curves import Curve
from app.figures.theme import GREY
from app.naming import label, readable
from app.text import _, paragraph
from app.visit import REFERENCE
from attention_core.experiments.error import UNIFORM
from attention_core.experiments.tradeoff import Point, pareto_front

VISIBLE = 0.005
"""A floor that is nowhere higher than this lies on the axis, and is not drawn."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a chart is to show.

    Attributes:
        attentions: the variants on it.
        places: every chosen variant's place in the shared series of colours, by key.
        against: ``"budget"``, ``"length"`` or ``"cost"``.
        measure: one of the experiment's measures.
        n: tokens of the input.
        d: its head size.
        causal: whether the future is hidden.
        heads: how many heads are put together.
        times: measured milliseconds by word; None where cost is counted in multiply-adds.
    """

    attentions: Sequence[ac.Attention]
    places: Mapping[str, int]
    against: str
    measure: str
    n: int
    d: int
    causal: bool
    heads: int
    times: Mapping[str, float] | None

    def price(self, point: Point) -> float | None:
        """What a point costs, None where that was not measured."""
        return float(point.multiply_adds) if self.times is None else self.times.get(point.word)


def lines(asked: Asked, found: Sequence[Point]) -> list[Curve]:
    """The lines of a view, the ones beneath first."""
    return {"budget": _over_budget, "length": _over_length, "cost": _over_cost}[asked.against](asked, found)


def without_zeros(drawn: Sequence[Curve]) -> list[Curve]:
    """Lines as a logarithmic axis can show them: a gap where there is no error, bands down to the least there is."""
    edges = [y for line in drawn for y in (*line.y, *(line.low or ())) if y is not None and y > 0]
    least = min(edges, default=1.0)
    return [
        replace(
            line,
            y=[y if y is not None and y > 0 else None for y in line.y],
            low=None if line.low is None else [max(y, least) for y in line.low],
            high=None if line.high is None else [max(y, least) for y in line.high],
        )
        for line in drawn
    ]


def replaces(attention: ac.Attention) -> bool:
    """Whether a variant is something else than softmax on purpose: there is nothing its errors should shrink to."""
    variant = attention.variant
    return variant.approximates is None and variant.reference is None and attention.key != REFERENCE


def reference_name(reference: str) -> str:
    """What a row's ``reference`` is called: softmax, or the own reference of the variant with that key."""
    return _(ac.variant(reference).reference_name)


def by_variant(asked: Asked, found: Sequence[Point]) -> Iterator[tuple[ac.Attention, list[Point]]]:
    """The points of each variant, without those of softmax as it is, which is what the others are held against."""
    for attention in asked.attentions:
        own = [p for p in found if p.variant == attention.key]
        if own and attention.word != REFERENCE:
            yield attention, own


def cheaper_upwards(own: Sequence[Point]) -> bool:
    """Whether a knob saves when it is turned up, as a stride does."""
    least, most = min(own, key=_value), max(own, key=_value)
    return least.multiply_adds > most.multiply_adds


def _over_budget(asked: Asked, found: Sequence[Point]) -> list[Curve]:
    """One line per variant over its knob, its floor beneath it; a variant without a knob is level."""
    budgets = [_value(p) for p in found if p.value is not None] or [1.0, float(asked.n)]
    ends = [min(budgets), max(budgets)]
    drawn = _zeros(asked, found, lambda point: ends)
    for attention, own in by_variant(asked, found):
        budget = attention.variant.budget
        if budget is None:
            drawn.append(_line(asked, attention, own * 2, ends, name=_(attention.title), marks=False))
            continue
        own = sorted(own, key=_value)
        name = f"{_(attention.title)} · {readable(budget.name)}{' × n' if isinstance(own[0].value, float) else ''}"
        name, xs = name + (" ↓" if cheaper_upwards(own) else ""), [_value(p) for p in own]
        drawn.append(_line(asked, attention, own, xs, name=name))
        if asked.measure == "matrix" and any((p.floor or 0.0) > VISIBLE for p in own):
            drawn.append(
                Curve(
                    name=_("{name}: floor", name=name),
                    group=name,
                    listed=False,
                    x=xs,
                    y=[_drawable(p.floor) for p in own],
                    colour=asked.places[attention.key],
                    dash="dash",
                    marks=False,
                    notes=[_floor_note(p) for p in own],
                )
            )
    return drawn


def _over_length(asked: Asked, found: Sequence[Point]) -> list[Curve]:
    drawn = _zeros(asked, found, lambda point: [float(point.n)])
    for attention, own in by_variant(asked, found):
        drawn.append(_line(asked, attention, own, [float(p.n) for p in own], name=label(attention)))
    return drawn


def _over_cost(asked: Asked, found: Sequence[Point]) -> list[Curve]:
    """One line per variant over what it costs, and beneath them the offers worth taking."""
    priced = [(p, price) for p in found if (price := asked.price(p)) is not None]
    comparable = [(p, price) for p, price in priced if p.reference == REFERENCE]
    front = [comparable[i] for i in pareto_front([(price, p.middle) for p, price in comparable])]
    drawn = [
        Curve(
            name=_("Pareto front"),
            x=[price for _p, price in front],
            y=[_drawable(p.middle) for p, _price in front],
            colour=GREY,
            halo=True,
        )
    ]
    fixed = {UNIFORM: (_("Mean of v"), GREY), REFERENCE: (_("Softmax"), asked.places.get(REFERENCE, 0))}
    for point, price in comparable:
        if point.word in fixed:
            name, colour = fixed[point.word]
            drawn.append(Curve(name=name, x=[price], y=[point.middle], colour=colour, notes=[_note(point)]))
    cost = {p.word: price for p, price in priced}
    for attention, own in by_variant(asked, [p for p, _price in priced]):
        own = sorted(own, key=_value)
        drawn.append(_line(asked, attention, own, [cost[p.word] for p in own], name=_(attention.title)))
    return drawn


def _line(
    asked: Asked, attention: ac.Attention, own: Sequence[Point], xs: Sequence[float], *, name: str, marks: bool = True
) -> Curve:
    spread, other = any(p.low < p.high for p in own), replaces(attention)
    return Curve(
        name=name,
        x=xs,
        y=[_drawable(p.middle) for p in own],
        # The edge of a band may be infinite where its middle is not: it then has none there.
        low=[p.low if math.isfinite(p.high) else p.middle for p in own] if spread else None,
        high=[p.high if math.isfinite(p.high) else p.middle for p in own] if spread else None,
        colour=asked.places[attention.key],
        dash="dashdot" if other else "solid",
        hollow=other,
        marks=marks,
        notes=[_note(p) for p in own],
    )


def _zeros(asked: Asked, found: Sequence[Point], xs: Callable[[Point], list[float]]) -> list[Curve]:
    """The error of uniform attention: against softmax, and against a variant's own reference in that one's colour."""
    drawn = []
    for reference in dict.fromkeys(p.reference for p in found if p.variant == UNIFORM):
        own = [p for p in found if p.variant == UNIFORM and p.reference == reference and math.isfinite(p.middle)]
        x = [(position, p) for p in own for position in xs(p)]
        common = reference == REFERENCE
        drawn.append(
            Curve(
                name=_("Mean of v")
                if common
                else _("Mean of v beside {reference}", reference=reference_name(reference)),
                x=[position for position, _p in x],
                y=[p.middle for _position, p in x],
                colour=GREY if common else asked.places[reference],
                dash="dot",
                marks=False,
                notes=[_note(p) for _position, p in x],
            )
        )
    return drawn


def _value(point: Point) -> float:
    """The budget as a number of things: what is a share, of n."""
    if isinstance(point.value, float):
        return point.value * point.n
    return float(point.value) if isinstance(point.value, int) else 0.0


def _drawable(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _note(point: Point) -> str:
    words = _("error {error:.3g}", error=point.middle)
    if point.reference != REFERENCE:
        words = _("error {error:.3g} beside {reference}", error=point.middle, reference=reference_name(point.reference))
    if point.low < point.high:
        words = paragraph(words, _("({low:.3g} to {high:.3g})", low=point.low, high=point.high))
    if point.setting is not None and isinstance(point.value, (int, float)):
        words = f"{readable(point.setting)} {point.value:.3g}<br>{words}"
    if point.floor:
        words += f"<br>{_floor_note(point)}"
    return words + "<br>" + _("{n} tokens · {count:,} multiply-adds", n=point.n, count=point.multiply_adds)


def _floor_note(point: Point) -> str:
    told = {
        "rank": _("floor {floor:.3g}: the best matrix of its rank", floor=point.floor or 0.0),
        "keys": _("floor {floor:.3g}: the best choice of as many keys per row", floor=point.floor or 0.0),
    }
    return told.get(point.floor_kind, "")
