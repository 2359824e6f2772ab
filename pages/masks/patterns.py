"""The pairs of tokens that each chosen variant allows on the Masks page, and which of its rules allows each pair."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import cycle, islice

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import View
from app.matrix_board.pair_kinds import primitive_name
from app.state.session import SharedOptions
from app.ui import variant_picker
from app.ui.input_panel import ChosenInput
from app.words.i18n import _, _n, enumeration, paragraph
from app.words.labels import label
from attention_core.analysis.masks.pattern import Pattern, has_pattern
from attention_core.inputs.labels import number_repeats
from pages.masks.options import MasksOptions

SHOWN_MULTIPLES = 3
"""Most distances that a sentence lists."""
NAMED = 3
"""Most variants whose numbers of layers the headline lists."""


@dataclass(frozen=True, eq=False)
class Found:
    """The patterns of all chosen variants.

    Attributes:
        view: input, head and masking that the patterns share.
        patterns: pattern of every variant that could be computed, in the order chosen.
        labels: one label per token, with repeated tokens numbered.
        key_labels: one label per key if the keys are those of another sequence; else None.
    """

    view: View
    patterns: dict[ac.Attention, Pattern]
    labels: tuple[str, ...]
    key_labels: tuple[str, ...] | None = None

    @property
    def drawn(self) -> dict[ac.Attention, Pattern]:
        """The patterns that mask some pairs."""
        return {a: p for a, p in self.patterns.items() if has_pattern(a.variant)}


def of(chosen: ChosenInput) -> Found:
    """Return the pattern of every chosen variant."""
    view = View(source=chosen.source, head=chosen.head, causal=SharedOptions.causal.value, special=True)
    MasksOptions.front.restrict_to(range(chosen.qkv.n))
    patterns = variant_picker.compute_for_each_variant(
        lambda attention: cached.pattern(chosen.source, attention, head=chosen.head, causal=view.causal)
    )
    keys = chosen.qkv.key_tokens
    return Found(view, patterns, number_repeats(chosen.qkv.names), None if keys is None else number_repeats(keys))


def _rules(pattern: Pattern) -> list[str]:
    """Return the names of the primitives that allow a pair."""
    return [name for name, part in pattern.primitives.items() if part.any()]


def is_window(pattern: Pattern) -> bool:
    """Return whether a query can attend to all keys up to a distance, and to no others."""
    return _rules(pattern) == ["window"]


def multiples(step: int, most: int) -> str:
    """Return the distances that are multiples of a step: all up to ``most``, or the first three."""
    every = [str(distance) for distance in range(step, most + 1, step)]
    return enumeration(every) if len(every) <= SHOWN_MULTIPLES else ", ".join(every[:SHOWN_MULTIPLES]) + " …"


def rule(pattern: Pattern) -> str:
    """Return in words which keys a query can attend to."""
    names = _rules(pattern)
    if is_window(pattern):
        return _("up to {n} tokens away", n=pattern.farthest)
    if names == ["stride"] and pattern.step > 1:
        return _("every {n} tokens", n=pattern.step)
    return " + ".join(_("random keys") if name == "random" else primitive_name(name) for name in names)


def caption(pattern: Pattern, *, every_head: bool) -> str:
    """Return a panel's caption: how many pairs are allowed, per head and in any head."""
    share_ = pattern.pairs / pattern.possible
    if every_head and pattern.allowed.sum() > round(pattern.pairs):
        in_any = pattern.allowed.sum() / pattern.possible
        return _("{share:.1%} of pairs per head, {all:.1%} in at least one head", share=share_, all=in_any)
    return _("{share:.1%} of pairs ({pairs:,.0f})", share=share_, pairs=pattern.pairs)


def spent(layers: Sequence[Pattern], depth: int) -> tuple[float, float]:
    """Return the allowed pairs of a stack's layers up to a depth, and as a share of those of one softmax layer.

    Args:
        layers: pattern of each layer of one round; the rounds are repeated.
        depth: number of layers.
    """
    pairs = sum(pattern.pairs for pattern in islice(cycle(layers), depth))
    return pairs, pairs / layers[0].possible


def cost_note() -> str:
    """Return the tooltip of a panel's caption."""
    return _(
        "The last line adds up the allowed pairs of the layers needed to connect all pairs. The percentage compares "
        "this sum with the pairs of one softmax layer. The sum itself is in brackets."
    )


def cost(layers: Sequence[Pattern], complete: int | None) -> str:
    """Return how many pairs the layers allow that connect all pairs; "" if there is nothing to connect.

    Args:
        layers: pattern of each layer of one round; the rounds are repeated.
        complete: number of layers after which every pair is connected; None if this never happens.
    """
    if complete is None:
        return _("never connects all pairs")
    pairs, share = spent(layers, complete)
    return _n(
        "{n} layer connects all pairs: {share:.0%} ({pairs:,.0f})",
        "{n} layers connect all pairs: {share:.0%} ({pairs:,.0f})",
        n=complete,
        share=share,
        pairs=pairs,
    )


def seen(drawn: Mapping[ac.Attention, Pattern], *, one_layer: bool = False) -> str:
    """Return which patterns never connect all pairs, or else which allows the fewest; "" without patterns.

    Args:
        drawn: the patterns.
        one_layer: whether layers cannot be stacked, because the keys are those of another sequence.
    """
    if not drawn:
        return ""
    sparsest, pattern = min(drawn.items(), key=lambda item: item[1].pairs)
    fields = {"name": label(sparsest), "share": pattern.pairs / pattern.possible}
    if pattern.possible == 1 and not one_layer:
        return _("A single token attends only to itself. Use at least two tokens.")
    if not one_layer and (never := _never({label(a): p.step for a, p in drawn.items() if p.diameter is None})):
        depths = {label(a): (p.diameter, spent([p], p.diameter)[1]) for a, p in drawn.items() if p.diameter is not None}
        return paragraph(never, _alone(depths, {label(a) for a, p in drawn.items() if p.diameter == 2 and _has_hub(p)}))
    if len(drawn) == 1:
        return _("**{name}** allows {share:.1%} of query–key pairs.", **fields)
    return _("**{name}** allows the fewest query–key pairs: {share:.1%}.", **fields)


def _has_hub(pattern: Pattern) -> bool:
    """Return whether some token attends to all tokens, and all tokens attend to it."""
    return bool((pattern.allowed.all(0) & pattern.allowed.all(1)).any())


def _alone(depths: Mapping[str, tuple[int, float]], hubs: Set[str]) -> str:
    """Return how many layers each variant alone needs to connect all pairs; "" for none.

    Args:
        depths: the number of layers and their pairs as a share of those of one softmax layer, by the variant's name.
        hubs: names of variants that need two layers because of a global token.
    """
    if len(depths) > NAMED:
        (low, _share), (high, _share) = min(depths.values()), max(depths.values())
        return (
            _n(
                "Each of the other variants alone needs {n} layer to connect all pairs.",
                "Each of the other variants alone needs {n} layers to connect all pairs.",
                n=high,
            )
            if low == high
            else _(
                "Each of the other variants alone needs {low} to {high} layers to connect all pairs.",
                low=low,
                high=high,
            )
        )
    needed = enumeration(
        _("**{name}** needs 2 layers with its global token ({cost:.0%})", name=name, cost=cost)
        if name in hubs
        else _n(
            "**{name}** needs {n} layer ({cost:.0%})",
            "**{name}** needs {n} layers ({cost:.0%})",
            n=depth,
            name=name,
            cost=cost,
        )
        for name, (depth, cost) in depths.items()
    )
    return (
        _(
            "To connect all pairs alone, {needed}. In brackets: allowed pairs, compared with one softmax layer.",
            needed=needed,
        )
        if needed
        else ""
    )


def _never(steps: Mapping[str, int]) -> str:
    """Return which variants never connect all pairs, and why; "" for none.

    Args:
        steps: greatest common divisor of the distances in each pattern, by the variant's name.
    """
    if len(steps) > 1:
        return _(
            "If all layers use the same variant, **{names}** never connect all pairs. Information never leaves some "
            "groups of tokens.",
            names=enumeration(steps),
        )
    for name, step in steps.items():
        if step == 0:
            return _("**{name}** alone never connects all pairs, because each token attends only to itself.", name=name)
        if step > 1:
            return _(
                "**{name}** alone never connects all pairs, because it reaches only distances that are multiples of "
                "{step} tokens.",
                name=name,
                step=step,
            )
        return _(
            "**{name}** alone never connects all pairs, because information never leaves some groups of tokens.",
            name=name,
        )
    return ""
