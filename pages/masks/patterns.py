"""The patterns on the Masks page: which pairs each chosen variant allows, and by which primitive."""

from collections.abc import Mapping
from dataclasses import dataclass

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import View
from app.state.session import SharedOptions
from app.ui import variant_picker
from app.ui.input_panel import ChosenInput
from app.words.i18n import _, _n, paragraph
from app.words.labels import label
from attention_core.analysis.masks.pattern import Pattern, has_pattern
from attention_core.inputs.labels import number_repeats
from pages.masks.options import MasksOptions


@dataclass(frozen=True, eq=False)
class Found:
    """The patterns of all chosen variants.

    Attributes:
        view: input, head and masking that the patterns share.
        patterns: pattern of every variant that could be computed, in the order chosen.
        labels: one label per token, with repeated tokens numbered.
    """

    view: View
    patterns: dict[ac.Attention, Pattern]
    labels: tuple[str, ...]

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
    return Found(view, patterns, number_repeats(chosen.qkv.tokens))


def caption(pattern: Pattern, *, every_head: bool) -> str:
    """Return a panel's caption: how many pairs are allowed, per head and in any head."""
    share_ = pattern.pairs / pattern.possible
    if every_head and pattern.allowed.sum() > round(pattern.pairs):
        in_any = pattern.allowed.sum() / pattern.possible
        return _("{share:.1%} of pairs per head, {all:.1%} in at least one head", share=share_, all=in_any)
    return _("{share:.1%} of pairs ({pairs:,.0f})", share=share_, pairs=pattern.pairs)


def seen(drawn: Mapping[ac.Attention, Pattern]) -> str:
    """Return which pattern allows the fewest pairs, and the depth at which each connects all; "" without patterns."""
    if not drawn:
        return ""
    sparsest, pattern = min(drawn.items(), key=lambda item: item[1].pairs)
    fields = {"name": label(sparsest), "possible": pattern.possible, "share": pattern.pairs / pattern.possible}
    if pattern.possible == 1:
        return _("A single token attends only to itself. Use at least two tokens.")
    deep = {a: p.diameter for a, p in drawn.items() if p.diameter is not None}
    least = min(deep.values(), default=0)
    never = ", ".join(label(a) for a in drawn if a not in deep)
    if len(drawn) == 1:
        fewest = _("**{name}** allows {share:.1%} of {possible:,} query–key pairs.", **fields)
        soonest = _n("It connects every pair after {n} layer.", "It connects every pair after {n} layers.", n=least)
    else:
        names = ", ".join(label(a) for a, depth in deep.items() if depth == least)
        fewest = _("Sparsest: **{name}** allows {share:.1%} of {possible:,} query–key pairs.", **fields)
        soonest = _n(
            "First to connect every pair: **{names}**, after {n} layer.",
            "First to connect every pair: **{names}**, after {n} layers.",
            n=least,
            names=names,
        )
    return paragraph(
        fewest, soonest if deep else "", _("Never connects every pair: **{names}**.", names=never) if never else ""
    )
