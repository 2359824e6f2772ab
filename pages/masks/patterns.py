"""The token pairs that each variant on the Masks page allows, and the rules (such as a window) that allow each pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import MatrixView
from app.matrix_board.pair_kinds import primitive_name
from app.state.session import SharedOptions
from app.ui import variant_picker
from app.ui.input_panel import ChosenInput
from app.words.i18n import _, _n, paragraph
from attention_core.analysis.masks.pattern import Pattern, has_pattern
from attention_core.inputs.labels import number_repeats
from pages.masks.options import MasksOptions


@dataclass(frozen=True, eq=False)
class Masks:
    """The patterns (allowed query-key pairs) of all chosen variants.

    Attributes:
        view: input, head and masking that the patterns share.
        patterns: the pattern of every variant for which it could be computed, in the order chosen.
        labels: one label per token, with repeated tokens numbered.
        key_labels: one label per key if the keys are those of another sequence; else None.
    """

    view: MatrixView
    patterns: dict[ac.Attention, Pattern]
    labels: tuple[str, ...]
    key_labels: tuple[str, ...] | None = None

    @property
    def sparse(self) -> dict[ac.Attention, Pattern]:
        """The patterns that mask some pairs."""
        return {a: p for a, p in self.patterns.items() if has_pattern(a.variant)}


def compute_masks(chosen: ChosenInput) -> Masks:
    """Return the pattern of every chosen variant."""
    view = MatrixView(source=chosen.source, head=chosen.head, causal=SharedOptions.causal.value, special=True)
    MasksOptions.front.restrict_to(range(chosen.qkv.n))
    patterns = variant_picker.compute_for_each_variant(
        lambda attention: cached.pattern(chosen.source, attention, head=chosen.head, causal=view.causal)
    )
    keys = chosen.qkv.key_tokens
    return Masks(view, patterns, number_repeats(chosen.qkv.names), None if keys is None else number_repeats(keys))


def rule_names(pattern: Pattern) -> list[str]:
    """Return the names of the rules (primitives, such as "window") that allow some pair of the pattern."""
    return [name for name, part in pattern.primitives.items() if part.any()]


def is_window(pattern: Pattern) -> bool:
    """Return whether a query can attend to all keys up to a distance, and to no others."""
    return rule_names(pattern) == ["window"] and pattern.step <= 1


def reads_means(pattern: Pattern) -> bool:
    """Return whether queries read some keys only as means of blocks."""
    return "compressed" in rule_names(pattern)


def rule_text(pattern: Pattern) -> str:
    """Return a short text about which keys a query can attend to, such as ``up to 4 tokens away``."""
    names = rule_names(pattern)
    if is_window(pattern):
        return _n("up to {n} token away", "up to {n} tokens away", n=pattern.farthest)
    if names == ["window"]:
        return _("every {step} tokens, up to {n} tokens away", step=pattern.step, n=pattern.farthest)
    if names == ["stride"] and pattern.step > 1:
        return _("every {n} tokens", n=pattern.step)
    short_names = {"global": _("global"), "random": _("random")} if len(names) > 1 else {}
    if "heavy hitter" in names:
        short_names["window"] = _("last tokens")
    return " + ".join(short_names.get(name) or primitive_name(name) for name in names)


def caption(pattern: Pattern, *, all_heads: bool) -> str:
    """Return a panel's caption: the share of allowed pairs, and whether queries read some keys only as block means.

    Args:
        pattern: the pattern.
        all_heads: whether it includes all heads. The caption then has the mean over heads and the share in any head.
    """
    share = pattern.pairs / pattern.possible
    if all_heads and pattern.allowed.sum() > round(pattern.pairs):
        in_any = pattern.allowed.sum() / pattern.possible
        return _(
            "pairs allowed: {share:.1%} per head on average, {all:.1%} in at least one head", share=share, all=in_any
        )
    if reads_means(pattern):
        return _("{share:.1%} of pairs, partly as means", share=share)
    return _("{share:.1%} of pairs", share=share)


def relative_cost(layers: Sequence[Pattern], depth: int) -> float:
    """Return the sum of the allowed pairs in ``depth`` layers, divided by the pairs of one softmax layer.

    The given layers are repeated up to the depth.
    """
    return sum(pattern.pairs for pattern in islice(cycle(layers), depth)) / layers[0].possible


def cost_note(layers: Sequence[Pattern], complete: int | None) -> str:
    """Return the tooltip of a panel's caption: what connecting all tokens means, and how many pairs its layers allow.

    Args:
        layers: patterns of the layers, which are repeated in deeper stacks.
        complete: number of layers after which every pair is connected; None if this never happens.
    """
    return paragraph(
        _("All tokens are connected when each token can read every other token, directly or through other tokens."),
        "" if complete is None else pair_sum(complete, relative_cost(layers, complete)),
    )


def pair_sum(layers: int, cost: float) -> str:
    """Return the sentence about the allowed pairs of several layers together; empty for one layer.

    Args:
        layers: the number of layers.
        cost: sum of their allowed pairs, divided by the pairs of one softmax layer.
    """
    if layers == 1:
        return ""
    if round(cost, 2) < 1:
        return _("Together, the {n} layers allow {cost:.0%} of the pairs of one softmax layer.", n=layers, cost=cost)
    return _(
        "Together, the {n} layers allow {cost:.2f} times the pairs of one softmax layer, which alone connects all "
        "tokens.",
        n=layers,
        cost=cost,
    )


def percent(share: float) -> str:
    """Return a share of pairs in per cent; a share below 1 is never rounded to 100%."""
    if share == 1:
        return "100%"
    texts = (f"{share:.{digits}%}" for digits in range(1, 16, 2))
    return next(text for text in texts if not text.startswith("100"))


def unread_tokens(pattern: Pattern, *, causal: bool) -> int:
    """Return the number of tokens to which no other token attends, although some could; 0 if the rule is a stride."""
    if pattern.step > 1:
        return 0
    others = pattern.allowed & ~np.eye(len(pattern.allowed), dtype=bool)
    return int((others.sum(0) == 0).sum()) - causal


def layers_text(complete: int | None, unread: int = 0) -> str:
    """Return the text about how many layers connect all tokens.

    Args:
        complete: the number of layers; None if no number of layers connects them.
        unread: number of tokens to which no other token attends.
    """
    if complete is None:
        if unread:
            return _n("never: no other token reads {n} token", "never: no other token reads {n} tokens", n=unread)
        return _("never connects all tokens")
    return _n("connects all tokens after {n} layer", "connects all tokens after {n} layers", n=complete)
