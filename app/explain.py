"""Why they differ: one sentence per variant, computed from what is on screen."""

from collections.abc import Mapping

from app.compute import Matrix
from app.text import _
from app.variant_picker import label
from attention_core.variant import Attention


def in_one_sentence(attention: Attention, found: Matrix) -> str:
    """What this variant does to this input, with its numbers."""
    numbers, name = found.passport, label(attention)
    if attention.key == "softmax":
        return _(
            "**{name}** spreads a query's weight like {count:.1f} equally weighted keys (entropy {entropy:.2f} nats).",
            name=name,
            count=numbers.perplexity,
            entropy=numbers.entropy,
        )
    words = _(
        "**{name}** puts {wrong:.0%} of its mass on other tokens than softmax does; its output is off by {error:.0%} "
        "(the plain mean of the values by {zero:.0%}).",
        name=name,
        wrong=numbers.total_variation,
        error=found.output_error,
        zero=found.uniform_error,
    )
    if numbers.negative_mass > 0.0005:
        words += " " + _("{share:.1%} of its mass is negative.", share=numbers.negative_mass)
    return words


def overall(matrices: Mapping[Attention, Matrix]) -> str:
    """Which of the variants on screen comes closest to softmax on this input, and which is farthest."""
    others = {a: m.output_error for a, m in matrices.items() if a.key != "softmax"}
    if not others:
        return _("Add a variant to compare it with softmax on the same queries, keys and values.")
    zero = next(iter(matrices.values())).uniform_error
    closest, farthest = min(others, key=others.__getitem__), max(others, key=others.__getitem__)
    if len(others) > 1 and f"{others[closest]:.0%}" == f"{others[farthest]:.0%}":
        return _("On this input all of them are equally far from softmax: off by {error:.0%}.", error=others[closest])
    words = _(
        "On this input **{name}** comes closest to softmax: its output is off by {error:.0%}.",
        name=label(closest),
        error=others[closest],
    )
    if len(others) > 1:
        words += " " + _(
            "**{name}** is farthest, off by {error:.0%}. The plain mean of the values would be off by {zero:.0%}.",
            name=label(farthest),
            error=others[farthest],
            zero=zero,
        )
    return words
