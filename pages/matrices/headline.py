"""The headline of the Matrices page: how far each matrix is from its reference, and why."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.state.session import REFERENCE
from app.words.i18n import _, _n, enumeration, paragraph
from app.words.labels import every_key, label, reference_name
from attention_core.analysis.matrix.compare import Compared
from attention_core.metrics.passport import NEGATIVE
from attention_core.variant import Attention

LINEAR, LOCAL, NYSTROM = "linear", "local", "nystrom"
"""Variants with sentences of their own."""
MASKING = ("atrous", "bigbird", "blocks", "longformer", "sink", "sparse", "topk", "vertical_slash")
"""Other variants that are softmax over some of the keys, so that their misplaced weight is that of the masked keys."""
FLATTER = 1.5
"""Ratio of the effective numbers of keys per row beyond which linear attention is called flat."""
SIMILAR = 0.1
"""Share of a row's weight on other keys up to which a matrix is called similar to softmax's."""
CLOSE = 5.0
"""Percentage points up to which the error of equal weights is called close, or hardly larger."""


@dataclass(frozen=True, kw_only=True)
class Rival:
    """The output error of one variant, compared with a baseline.

    Attributes:
        name: name on screen.
        error: relative error of the variant's output against its reference.
        zero: relative error of the plain mean of the values.
    """

    name: str
    error: float
    zero: float


def overall(
    matrices: Mapping[Attention, Compared], *, causal: bool = False, hidden: str = "", difference: bool = False
) -> str:
    """Return how far the variants on screen are from their references (mostly softmax), and why.

    Args:
        matrices: the numbers of each variant.
        causal: whether future keys are hidden.
        hidden: the special tokens that the matrices leave out, as `joined_tokens` returns them.
        difference: whether the page shows differences of weights, so that orange does not mean a negative weight.
    """
    groups: dict[str, list[Rival]] = {_(REFERENCE): []}
    for attention, found in matrices.items():
        if attention.word != REFERENCE:
            rival = Rival(name=label(attention), error=found.output_error, zero=found.uniform_error)
            groups.setdefault(reference_name(attention), []).append(rival)
    closest, farthest = _extremes(groups[_(REFERENCE)])
    first = closest[0] if len(closest) == 1 and closest != farthest else ""
    causes = {
        name: reason(attention, matrices, _("It") if name == first else f"**{_(attention.title)}**", hidden)
        for attention in matrices
        if (name := label(attention)) in (*closest, *farthest)
    }
    cause = causes.pop(first, "")
    described = [
        (name, found) for a, found in matrices.items() if a.key == LINEAR and first and causes.get(name := label(a))
    ]
    causes |= {name: paragraph(causes[name], near_equal_weights(found, causal=causal)) for name, found in described}
    results = (
        headline(
            against, rivals, causal=causal, cause=cause if against == _(REFERENCE) else "", described=dict(described)
        )
        for against, rivals in groups.items()
        if rivals
    )
    signed = (inverted(*each, difference=difference) for each in matrices.items())
    text = paragraph(*results, *causes.values(), *signed)
    return text or _("Add a variant to compare it with softmax on the same queries, keys and values.")


def _extremes(rivals: Sequence[Rival]) -> tuple[list[str], list[str]]:
    """Return the names of the variants with the smallest and with the largest error, with the precision shown."""
    errors = {each.name: in_per_cent(each.error) for each in rivals if math.isfinite(each.error)}
    ends = (choose(errors.values(), default=math.nan) for choose in (min, max))
    smallest, largest = ([name for name, error in errors.items() if error == end] for end in ends)
    return smallest, largest


def reason(attention: Attention, matrices: Mapping[Attention, Compared], subject: str, hidden: str = "") -> str:
    """Return the reason for a variant's error; empty if it is not known or if nothing is lost.

    Args:
        attention: the variant.
        matrices: the numbers of all variants on screen.
        subject: the variant's name or a pronoun.
        hidden: the special tokens that the matrices leave out, as `joined_tokens` returns them.
    """
    if attention.key == LINEAR:
        return flatness(matrices, subject)
    return lost(attention, matrices[attention], subject, hidden)


def lost(attention: Attention, found: Compared, subject: str, hidden: str = "") -> str:
    """Return the reason for a mask's or for landmarks' error; empty for other variants and if nothing is lost."""
    if attention.key in (LOCAL, *MASKING) and in_per_cent(found.misplaced) > 0:
        fields = {"subject": subject, "share": found.misplaced, "hidden": hidden}
        # Without the special tokens, the mask hides at most this share of all weight.
        drawn = found.passport.total_variation
        if hidden and drawn < SIMILAR and drawn < found.misplaced / 2:
            return _(
                "{subject} resembles softmax but masks {share:.0%} of softmax's weight, mostly on {hidden}.", **fields
            )
        return _("{subject} masks {share:.0%} of softmax's weight.", **fields)
    budget = attention.variant.budget
    if attention.key == NYSTROM and budget and getattr(attention.params, budget.name) < len(found.weights):
        return _("{subject} replaces groups of tokens by their means, the landmarks.", subject=subject)
    return ""


def inverted(attention: Attention, found: Compared, *, difference: bool = False) -> str:
    """Return why weights of Nyström attention are negative; empty for other variants and if hardly any are."""
    if attention.key != NYSTROM or not found.passport.negative_mass > NEGATIVE:
        return ""
    fields = {"name": _(attention.title), "error": found.output_error, "share": found.passport.negative_mass}
    if difference:
        return _(
            "In **{name}** (error: {error:.0%}), negative entries of an inverse matrix make {share:.0%} of the weight "
            "negative.",
            **fields,
        )
    return _(
        "In **{name}** (error: {error:.0%}), negative entries of an inverse matrix make {share:.0%} of the weight "
        "negative (orange).",
        **fields,
    )


def flatness(matrices: Mapping[Attention, Compared], subject: str) -> str:
    """Return why the rows of linear attention are flat; empty if they are not flatter than those of softmax."""
    keys = {attention.key: found.passport.perplexity for attention, found in matrices.items()}
    linear, exact = keys.get(LINEAR, math.nan), keys.get(REFERENCE, math.nan)
    if not linear > FLATTER * exact:
        return ""
    return _(
        "{subject} has no exponential to enlarge differences, so a row spreads over {linear:.0f} effective keys "
        "(softmax: {exact:.0f}).",
        subject=subject,
        linear=linear,
        exact=exact,
    )


def near_equal_weights(found: Compared, *, causal: bool) -> str:
    """Return the output error of linear attention, and whether it is close to that of equal weights."""
    fields = {"error": found.output_error, "zero": found.uniform_error, "keys": every_key(causal=causal)}
    if abs(in_per_cent(found.output_error) - in_per_cent(found.uniform_error)) <= CLOSE:
        return _("Its error ({error:.0%}) is close to that of equal weights on {keys} ({zero:.0%}).", **fields)
    return _("Its error is {error:.0%} (with equal weights on {keys}: {zero:.0%}).", **fields)


def headline(
    against: str, rivals: Sequence[Rival], *, causal: bool = False, cause: str = "", described: Collection[str] = ()
) -> str:
    """Return which variants come closest to their reference and which are farthest, in the same words in any order.

    Variants whose error is not finite are not ranked but named.

    Args:
        against: the reference's name.
        rivals: at least one, all compared with this reference.
        causal: whether future keys are hidden, so that the baseline averages the values up to each query.
        cause: why the variant that comes closest has an error.
        described: variants whose error, and that of equal weights, another sentence says.
    """
    ranked = sorted((each for each in rivals if math.isfinite(each.error)), key=lambda each: each.name)
    broken = sorted(each.name for each in rivals if not math.isfinite(each.error))
    zero = rivals[0].zero
    if ranked and not math.isfinite(zero):
        return paragraph(
            _("The output of {against} contains values that are not finite.", against=against), not_finite(broken)
        )
    words = _ranked(against, ranked, causal=causal, cause=cause, described=described) if ranked else ""
    if against != _(REFERENCE):
        words = paragraph(
            words,
            _(
                "These variants are compared with {against} instead of softmax, so they are ranked separately.",
                against=against,
            ),
        )
    return paragraph(words, not_finite(broken))


def not_finite(names: Sequence[str]) -> str:
    """Return which variants have numbers that are not finite, and what helps; empty for none."""
    if not names:
        return ""
    return _(
        "No error can be computed for **{names}**, because some values are not finite. Use smaller queries and keys.",
        names=enumeration(names),
    )


def _ranked(against: str, rivals: Sequence[Rival], *, causal: bool, cause: str, described: Collection[str]) -> str:
    """Return the ranking of variants with finite errors next to the finite error of equal weights, in bold."""
    (first, last), zero = _extremes(rivals), rivals[0].zero
    fields: dict[str, Any] = {
        "against": against,
        "zero": zero,
        "keys": every_key(causal=causal),
        "error": min(rival.error for rival in rivals),
        "most": max(rival.error for rival in rivals),
    }
    above = in_per_cent(zero) - in_per_cent(fields["most"])
    if first == last:
        return paragraph(
            _("**All variants have an output error of {error:.0%} compared with {against}.**", **fields)
            if len(rivals) > 1
            else _("**{name} has an output error of {error:.0%} compared with {against}.**", name=first[0], **fields),
            _baseline(above, **fields),
        )
    others = not set(last) <= set(described)
    if in_per_cent(fields["error"]) >= in_per_cent(zero):
        none = _("**No variant is better than equal weights on {keys} ({zero:.0%} output error).**", **fields)
        return paragraph(none, _closest(first, **fields), cause, _farthest(last, **fields) if others else "")
    closest = paragraph(_closest(first, first=True, **fields), cause)
    if others and above > CLOSE:
        return paragraph(closest, _farthest(last, **fields), _baseline(above, **fields))
    return paragraph(closest, _near_baseline(last, above, **fields) if others else "")


def _closest(names: Sequence[str], *, first: bool = False, **fields: object) -> str:
    """Return which variants have the smallest error; the ``first`` sentence also names the error."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    if first:
        return _n(
            "**{names} is closest to {against} (output error: {error:.0%} of {against}'s output).**",
            "**{names} are closest to {against} (output error: {error:.0%} of {against}'s output).**",
            **values,
        )
    return _n(
        "**{names} is closest to {against} (output error: {error:.0%}).**",
        "**{names} are closest to {against} (output error: {error:.0%}).**",
        **values,
    )


def _farthest(names: Sequence[str], **fields: object) -> str:
    """Return which variants have the largest error."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n(
        "**{names} is farthest from {against} (output error: {most:.0%}).**",
        "**{names} are farthest from {against} (output error: {most:.0%}).**",
        **values,
    )


def _near_baseline(names: Sequence[str], above: float, **fields: object) -> str:
    """Return that the variants with the largest error are hardly better than equal weights, or not better.

    Args:
        names: the variants.
        above: the error of equal weights minus theirs, at most ``CLOSE`` percentage points.
        fields: values of the message.
    """
    values: dict[str, Any] = {"names": enumeration(names), **fields}
    if above > 0:
        return _(
            "The output error of **{names}** ({most:.0%}) is hardly smaller than that of equal weights on {keys} "
            "({zero:.0%}).",
            **values,
        )
    if above == 0:
        return _(
            "The output error of **{names}** ({most:.0%}) is no smaller than that of equal weights on {keys} "
            "({zero:.0%}).",
            **values,
        )
    return _(
        "The output error of **{names}** ({most:.0%}) is larger than that of equal weights on {keys} ({zero:.0%}).",
        **values,
    )


def _baseline(above: float, **fields: object) -> str:
    """Return the error of equal weights, compared with the largest error of the variants.

    Args:
        above: difference of the two errors in percentage points.
        fields: values of the message.
    """
    if above < 0:
        return _("Equal weights on {keys} would have an output error of only {zero:.0%}.", **fields)
    if above == 0:
        return _("Equal weights on {keys} would also have an output error of {zero:.0%}.", **fields)
    if above <= CLOSE:
        return _("Equal weights on {keys} would have an output error of {zero:.0%}, which is hardly larger.", **fields)
    return _("Equal weights on {keys} would have an output error of {zero:.0%}.", **fields)


def in_per_cent(error: float) -> float:
    """Return an error with the precision shown, so that errors that read the same rank equally."""
    return float(f"{error:.0%}".rstrip("%"))
