"""The family tree: what is a special case of what, by the settings that make it so."""

from collections.abc import Mapping
from dataclasses import dataclass

from attention_core import registry
from attention_core.variant import TOKENS, Attention, SpecialCase, Value, Variant


@dataclass(frozen=True)
class Edge:
    """One variant that is another at some of its settings.

    Attributes:
        general: the variant that has more settings to choose.
        special: what it is at those.
        case: the settings.
    """

    general: Variant
    special: Variant
    case: SpecialCase

    def holds(self, *, causal: bool) -> bool:
        """Whether this form of both is the same."""
        both = self.general.causal_reason is None and self.special.causal_reason is None
        return (both or not causal) and self.case.causal in (None, causal)

    def both(self, n: int, **shared: Value) -> tuple[Attention, Attention]:
        """The general variant at these settings, and the special one, which are then the same.

        Args:
            n: number of tokens.
            shared: values of the settings that both have; the general one's defaults where they are not given.
        """
        given = self.general.params()
        same = {name: shared.get(name, getattr(given, name)) for name in self.case.shared}
        return (
            registry.get(self.general.key, **_at(self.general, self.case.settings, n), **same),
            registry.get(self.special.key, **_at(self.special, self.case.other, n), **same),
        )


def _at(variant: Variant, settings: Mapping[str, Value], n: int) -> dict[str, Value]:
    least = {each.name: int(each.low or 0) for each in variant.params.settings()}
    return {name: max(n, least[name]) if value == TOKENS else value for name, value in settings.items()}


@dataclass(frozen=True)
class Branch:
    """A variant in the tree.

    Attributes:
        variant: the variant.
        edge: what it grows out of, None for a root.
        also: what else it is at other settings.
        branches: what has it as a special case.
    """

    variant: Variant
    edge: Edge | None
    also: tuple[Edge, ...]
    branches: "tuple[Branch, ...]"


def edges(variant: Variant) -> tuple[Edge, ...]:
    """What a variant is at the ends of its settings, its place in the tree first."""
    return tuple(Edge(variant, registry.variant(case.key), case) for case in variant.special_cases)


def every_edge() -> tuple[Edge, ...]:
    """All there are."""
    return tuple(edge for variant in registry.all_variants() for edge in edges(variant))


def trees() -> tuple[Branch, ...]:
    """The roots: variants that are no special case's general form, and from which others grow; the largest first."""
    grown: dict[str, list[Variant]] = {}
    for variant in registry.all_variants():
        if variant.special_cases:
            grown.setdefault(variant.special_cases[0].key, []).append(variant)

    def branch(variant: Variant) -> Branch:
        edge, *also = edges(variant) or (None,)
        return Branch(variant, edge, tuple(also), tuple(map(branch, grown.get(variant.key, ()))))

    def size(tree: Branch) -> int:
        return 1 + sum(map(size, tree.branches))

    roots = [v for v in registry.all_variants() if not v.special_cases and v.key in grown]
    return tuple(sorted(map(branch, roots), key=size, reverse=True))
