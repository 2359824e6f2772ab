"""The family tree of variants: an edge links a general variant to one that it equals at certain settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from attention_core import registry
from attention_core.attention import Attention
from attention_core.variant import TOKENS, SpecialCase, Value, Variant


@dataclass(frozen=True)
class Edge:
    """One edge of the family tree: a variant that equals another variant at some of its settings.

    Attributes:
        general: the variant that has more settings.
        special: the variant that ``general`` equals at those settings.
        case: the settings of both variants, as declared in ``general.special_cases``.
    """

    general: Variant
    special: Variant
    case: SpecialCase

    def holds(self, *, causal: bool) -> bool:
        """Return whether the causal (or non-causal) forms of the two variants are equal."""
        both_causal = self.general.causal_reason is None and self.special.causal_reason is None
        return (both_causal or not causal) and self.case.causal in (None, causal)

    def attentions(self, n: int, **shared: Value) -> tuple[Attention, Attention]:
        """Return the general variant at the settings of the case, and the special variant; the two are then equal.

        Args:
            n: number of tokens.
            shared: values of the settings that both variants have; by default the general variant's defaults.
        """
        defaults = self.general.params()
        same = {name: shared.get(name, getattr(defaults, name)) for name in self.case.shared}
        return (
            registry.get(self.general.key, **_resolve_settings(self.general, self.case.settings, n), **same),
            registry.get(self.special.key, **_resolve_settings(self.special, self.case.other, n), **same),
        )


def _resolve_settings(variant: Variant, settings: Mapping[str, Value], n: int) -> dict[str, Value]:
    minimum = {each.name: int(each.low or 0) for each in variant.params.settings()}
    return {name: max(n, minimum[name]) if value == TOKENS else value for name, value in settings.items()}


@dataclass(frozen=True)
class Branch:
    """A variant in the tree, with the branches below it.

    Attributes:
        variant: the variant.
        edge: the edge to the parent, which is a special case of this variant; None for a root.
        branches: branches of the variants whose parent is this variant.
    """

    variant: Variant
    edge: Edge | None
    branches: "tuple[Branch, ...]"


def edges(variant: Variant) -> tuple[Edge, ...]:
    """Return one edge for each special case of a variant, the edge to its parent in the tree first."""
    return tuple(Edge(variant, registry.variant(case.key), case) for case in variant.special_cases)


def trees() -> tuple[Branch, ...]:
    """Return the trees, largest first; a root has no special cases and is the special case of at least one variant."""
    children: dict[str, list[Variant]] = {}
    for variant in registry.all_variants():
        if variant.special_cases:
            children.setdefault(variant.special_cases[0].key, []).append(variant)

    def branch(variant: Variant) -> Branch:
        return Branch(variant, next(iter(edges(variant)), None), tuple(map(branch, children.get(variant.key, ()))))

    def size(tree: Branch) -> int:
        return 1 + sum(map(size, tree.branches))

    roots = [v for v in registry.all_variants() if not v.special_cases and v.key in children]
    return tuple(sorted(map(branch, roots), key=size, reverse=True))
