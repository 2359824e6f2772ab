"""Sentences on how far the matrices are from their references, computed only from the numbers on screen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.state.session import REFERENCE
from app.words.i18n import _, _n, ended, enumeration, paragraph, quoted
from app.words.labels import label, reference_name
from attention_core.analysis.matrix.compare import Compared
from attention_core.analysis.matrix.head_scores import HeadScores
from attention_core.analysis.matrix.telling_row import SEEN, Share
from attention_core.formatting import format_readable, formatted, span
from attention_core.metrics.passport import NEGATIVE, rows_are_distributions, rows_of_one
from attention_core.registry import variant
from attention_core.variant import Attention

LINEAR, LOCAL, NYSTROM = "linear", "local", "nystrom"
"""Variants with sentences of their own."""
MASKING = ("atrous", "bigbird", "blocks", "longformer", "sink", "sparse", "topk", "vertical_slash")
"""Other variants that are softmax over some of the keys, so that their misplaced weight is that of the masked keys."""
FLATTER = 1.5
"""Ratio of the effective numbers of keys per row beyond which linear attention is called flat."""
CLOSE = 5.0
"""Percentage points up to which the error of equal weights is called hardly larger."""


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


def in_one_sentence(attention: Attention, found: Compared, *, causal: bool = False) -> str:
    """Return the effect of this variant on this input, with its numbers."""
    numbers, name = found.passport, label(attention)
    if attention.word == REFERENCE:
        return _(
            "The rows of **{name}** have a mean entropy of {entropy:.2f} nats, the same as a row with {count:.1f} "
            "equally weighted keys.",
            name=name,
            count=numbers.perplexity,
            entropy=numbers.entropy,
        )
    fields = {
        "name": name,
        "reference": reference_name(attention),
        "wrong": numbers.total_variation,
        "matrix": numbers.relative_error,
        "error": found.output_error,
        "zero": found.uniform_error,
        "keys": _every_key(causal=causal),
    }
    output = _("Output error: {error:.0%} (equal weights for {keys} would give {zero:.0%}).", **fields)
    if rows_are_distributions(numbers.row_sum_min, numbers.row_sum_max, numbers.negative_mass):
        if _shown(numbers.total_variation) == 0:
            return paragraph(_("**{name}** gives the same weights as {reference}.", **fields), output)
        return paragraph(
            _(
                "Compared with {reference}, **{name}** moves {wrong:.0%} of a row's weight to other keys, on average.",
                **fields,
            ),
            output,
        )
    signed = numbers.negative_mass > NEGATIVE
    return paragraph(
        _("Matrix error of **{name}** compared with {reference}: {matrix:.0%}.", **fields),
        output,
        _("Negative weights make up {share:.1%} of the sum of absolute weights.", share=numbers.negative_mass)
        if signed
        else "",
    )


def overall(
    matrices: Mapping[Attention, Compared], *, causal: bool = False, hidden: str = "", difference: bool = False
) -> str:
    """Return how far the variants on screen are from their references (mostly softmax), and why on a second line.

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
    results = paragraph(*(headline(against, rivals, causal=causal) for against, rivals in groups.items() if rivals))
    ranked = [attention for attention in matrices if label(attention) in _extremes(groups[_(REFERENCE)])]
    signed = paragraph(*(inverted(*each, difference=difference) for each in matrices.items()))
    reasons = paragraph(*(reason(attention, matrices, hidden) for attention in ranked), signed)
    text = "  \n".join(filter(None, (results, reasons)))
    return text or _("Add a variant to compare it with softmax on the same queries, keys and values.")


def _extremes(rivals: Sequence[Rival]) -> set[str]:
    """Return the names of the variants whose error is the smallest or the largest with the precision shown."""
    errors = {each.name: _shown(each.error) for each in rivals if math.isfinite(each.error)}
    return {name for name, error in errors.items() if error in (min(errors.values()), max(errors.values()))}


def reason(attention: Attention, matrices: Mapping[Attention, Compared], hidden: str = "") -> str:
    """Return the reason for a variant's error; empty if it is not known or if nothing is lost.

    Args:
        attention: the variant.
        matrices: the numbers of all variants on screen.
        hidden: the special tokens that the matrices leave out, as `joined_tokens` returns them.
    """
    return flatness(matrices) if attention.key == LINEAR else lost(attention, matrices[attention], hidden)


def lost(attention: Attention, found: Compared, hidden: str = "") -> str:
    """Return the reason for a mask's or for landmarks' error; empty for other variants and if nothing is lost."""
    name = _(attention.title)
    if attention.key in (LOCAL, *MASKING) and _shown(found.misplaced) > 0:
        fields = {"name": name, "share": found.misplaced, "hidden": hidden}
        # Without the special tokens, the mask hides at most this share of all weight.
        if hidden and found.passport.total_variation < found.misplaced / 2:
            return _("**{name}** masks keys that hold {share:.0%} of softmax's weight, mostly on {hidden}.", **fields)
        return _("**{name}** masks keys that hold {share:.0%} of softmax's weight.", **fields)
    budget = attention.variant.budget
    if attention.key == NYSTROM and budget and getattr(attention.params, budget.name) < len(found.weights):
        return _("**{name}** replaces groups of tokens by their means, the landmarks.", name=name)
    return ""


def inverted(attention: Attention, found: Compared, *, difference: bool = False) -> str:
    """Return why weights of Nyström attention are negative; empty for other variants and if hardly any are."""
    if attention.key != NYSTROM or not found.passport.negative_mass > NEGATIVE:
        return ""
    fields = {"name": _(attention.title), "share": found.passport.negative_mass}
    if difference:
        return _(
            "**{name}** multiplies by an inverse matrix, which makes {share:.0%} of its weight negative.", **fields
        )
    return _(
        "**{name}** multiplies by an inverse matrix, which makes {share:.0%} of its weight negative (orange).", **fields
    )


def flatness(matrices: Mapping[Attention, Compared]) -> str:
    """Return why the rows of linear attention are flat; empty if they are not flatter than those of softmax."""
    keys = {attention.key: found.passport.perplexity for attention, found in matrices.items()}
    linear, exact = keys.get(LINEAR, math.nan), keys.get(REFERENCE, math.nan)
    if not linear > FLATTER * exact:
        return ""
    return _(
        "**{name}** has no exponential that enlarges differences between scores, so a row spreads its weight over "
        "{linear:.0f} effective keys (softmax: {exact:.0f}).",
        name=_(variant(LINEAR).title),
        linear=linear,
        exact=exact,
    )


def headline(against: str, rivals: Sequence[Rival], *, causal: bool = False) -> str:
    """Return which variants come closest to their reference and which are farthest, in the same words in any order.

    Variants whose error is not finite are not ranked but named.

    Args:
        against: the reference's name.
        rivals: at least one, all compared with this reference.
        causal: whether future keys are hidden, so that the baseline averages the values up to each query.
    """
    ranked = sorted((each for each in rivals if math.isfinite(each.error)), key=lambda each: each.name)
    broken = sorted(each.name for each in rivals if not math.isfinite(each.error))
    zero = rivals[0].zero
    if ranked and not math.isfinite(zero):
        return paragraph(
            _("The output of {against} contains values that are not finite.", against=against), not_finite(broken)
        )
    words = _ranked(against, ranked, causal=causal) if ranked else ""
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


def _every_key(*, causal: bool) -> str:
    """Return the keys to which the baseline gives equal weights."""
    return _("all keys up to each query") if causal else _("all keys")


def _ranked(against: str, rivals: Sequence[Rival], *, causal: bool) -> str:
    """Return the ranking of variants with finite errors next to the finite error of equal weights, in bold."""
    errors = [_shown(rival.error) for rival in rivals]
    low, high, zero = min(errors), max(errors), rivals[0].zero
    first = [rival.name for rival, error in zip(rivals, errors, strict=True) if error == low]
    last = [rival.name for rival, error in zip(rivals, errors, strict=True) if error == high]
    fields: dict[str, Any] = {
        "against": against,
        "zero": zero,
        "keys": _every_key(causal=causal),
        "error": min(rival.error for rival in rivals),
        "most": max(rival.error for rival in rivals),
    }
    above = _shown(zero) - high
    if low == high:
        return paragraph(
            _("**All variants have an output error of {error:.0%} compared with {against}.**", **fields)
            if len(rivals) > 1
            else _("**{name} has an output error of {error:.0%} compared with {against}.**", name=first[0], **fields),
            _baseline(above, **fields),
        )
    if low >= _shown(zero):
        none = _("**No variant is better than equal weights on {keys} ({zero:.0%} output error).**", **fields)
        return paragraph(none, _closest(first, **fields), _farthest(last, **fields))
    if above > CLOSE:
        return paragraph(_closest(first, first=True, **fields), _farthest(last, **fields), _baseline(above, **fields))
    return paragraph(_closest(first, first=True, **fields), _near_baseline(last, above, **fields))


def _closest(names: Sequence[str], *, first: bool = False, **fields: object) -> str:
    """Return which variants have the smallest error; the ``first`` sentence also names the error."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    if first:
        return _n(
            "**{names} is closest to {against} ({error:.0%} output error).**",
            "**{names} are closest to {against} ({error:.0%} output error).**",
            **values,
        )
    return _n(
        "**{names} is closest to {against} ({error:.0%}).**",
        "**{names} are closest to {against} ({error:.0%}).**",
        **values,
    )


def _farthest(names: Sequence[str], **fields: object) -> str:
    """Return which variants have the largest error."""
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    return _n("**{names} is farthest ({most:.0%}).**", "**{names} are farthest ({most:.0%}).**", **values)


def _near_baseline(names: Sequence[str], above: float, **fields: object) -> str:
    """Return that the variants with the largest error are hardly better than equal weights, or not better.

    Args:
        names: the variants.
        above: the error of equal weights minus theirs, at most ``CLOSE`` percentage points.
        fields: values of the message.
    """
    values: dict[str, Any] = {"n": len(names), "names": enumeration(names), **fields}
    if above > 0:
        return _n(
            "**{names}** ({most:.0%}) is hardly better than equal weights on {keys} ({zero:.0%}).",
            "**{names}** ({most:.0%}) are hardly better than equal weights on {keys} ({zero:.0%}).",
            **values,
        )
    if above == 0:
        return _n(
            "**{names}** ({most:.0%}) is no better than equal weights on {keys} ({zero:.0%}).",
            "**{names}** ({most:.0%}) are no better than equal weights on {keys} ({zero:.0%}).",
            **values,
        )
    return _n(
        "**{names}** ({most:.0%}) is worse than equal weights on {keys} ({zero:.0%}).",
        "**{names}** ({most:.0%}) are worse than equal weights on {keys} ({zero:.0%}).",
        **values,
    )


def _baseline(above: float, **fields: object) -> str:
    """Return the error of equal weights, compared with the largest error of the variants.

    Args:
        above: difference of the two errors in percentage points.
        fields: values of the message.
    """
    if above < 0:
        return _("Equal weights for {keys} would give an error of only {zero:.0%}.", **fields)
    if above == 0:
        return _("Equal weights for {keys} would give an error of {zero:.0%} too.", **fields)
    if above <= CLOSE:
        return _("Equal weights for {keys} would give an error of {zero:.0%}, hardly more.", **fields)
    return _("Equal weights for {keys} would give an error of {zero:.0%}.", **fields)


def _shown(error: float) -> float:
    """Return an error with the precision shown, so that errors that read the same rank equally."""
    return float(f"{error:.0%}".rstrip("%"))


def hidden_weight(found: Compared, hidden: str) -> str:
    """Return how much weight is on the special tokens that the matrix leaves out; empty if none are hidden."""
    if not hidden or not math.isfinite(found.left_out):
        return ""
    return _("{tokens}: {share:.0%} of weight, not drawn", tokens=hidden, share=found.left_out)


def caption(attention: Attention, found: Compared, *, difference: bool, slider: bool = True) -> str:
    """Return the lines under a panel's title: its output error, and what it is compared with if that is not clear.

    Args:
        attention: the variant.
        found: its numbers.
        difference: whether the panel shows the difference from the reference.
        slider: whether the panel has a slider; otherwise a line about the rows takes its place.
    """
    numbers = found.passport
    if not math.isfinite(numbers.row_sum_max):
        return _("Some weights are not finite. Use smaller queries and keys.")
    spread = "" if slider else "\n" + _("{n:.0f} effective keys per row", n=numbers.perplexity)
    if attention.word == REFERENCE:
        return _("reference") + spread
    error = _("output error {output:.0%}", output=found.output_error)
    if numbers.negative_mass > NEGATIVE and not difference:
        error += " · " + _("negative weight {share:.0%}", share=numbers.negative_mass)
    if difference:
        return f"{error}\n{_('difference from {reference}', reference=reference_name(attention))}"
    if attention.variant.reference is not None:
        return f"{error}\n{_('reference {reference}', reference=reference_name(attention))}"
    return error + spread


def details(attention: Attention, found: Compared, *, hidden: str) -> str:
    """Return the tooltip of a panel's line: errors with their tokens, entropy, and row sums other than one.

    Args:
        attention: the variant.
        found: its numbers.
        hidden: the special tokens that the matrix leaves out, as `joined_tokens` returns them; only the output error
            includes them.
    """
    numbers = found.passport
    if not math.isfinite(numbers.row_sum_max):
        return ""
    words = [_("Entropy {entropy:.2f} nats", entropy=numbers.entropy)]
    if attention.word != REFERENCE:
        words += [
            _(
                "output error {output:.0%} · matrix error {matrix:.0%}",
                output=found.output_error,
                matrix=numbers.relative_error,
            ),
            _("reference {reference}", reference=reference_name(attention)),
        ]
    if not rows_of_one(numbers.row_sum_min, numbers.row_sum_max):
        words.append(_("rows sum to {sums}", sums=span(numbers.row_sum_min, numbers.row_sum_max, ".3g")))
    if numbers.negative_mass > NEGATIVE:
        words.append(
            _("negative weights make up {share:.1%} of the sum of absolute weights", share=numbers.negative_mass)
        )
    text = " · ".join(words)
    return paragraph(ended(text), without(hidden)) if hidden else text


def joined_tokens(tokens: Sequence[str]) -> str:
    """Return different tokens in a list; empty for none."""
    return enumeration(dict.fromkeys(tokens))


def without(hidden: str) -> str:
    """Return which numbers on the page leave out the hidden special tokens; empty if none are hidden."""
    if not hidden:
        return ""
    return _("All numbers are computed without {tokens}, except for the output error.", tokens=hidden)


def sign_note(matrices: Mapping[Attention, Compared], *, difference: bool) -> str:
    """Return the meaning of the colours on either side of zero; empty if the headline explains all negative weights."""
    if difference:
        return _("Blue: more weight than the reference gives. Orange: less weight.")
    if any(found.passport.negative_mass > NEGATIVE for a, found in matrices.items() if a.key != NYSTROM):
        return _("Orange: negative weights, which subtract values from the output.")
    return ""


def scope_note(hidden: str, *, every_head: bool) -> str:
    """Return which heads the numbers include, and which tokens the matrices on the board leave out.

    Args:
        hidden: the special tokens that the matrices leave out, as `joined_tokens` returns them.
        every_head: whether the matrices are averages over all heads.
    """
    return paragraph(
        _(
            "The output error is computed from the outputs of all heads. All other numbers describe the average of the "
            "heads' matrices."
        )
        if every_head
        else "",
        _("The matrices leave out {tokens}.", tokens=hidden) if hidden else "",
    )


def attends_to(most: Sequence[Share], labels: Sequence[str]) -> str:
    """Return the keys with the largest weights of a query, the largest first."""
    if not most:
        return _("no key has a weight of {least} or more", least=SEEN)
    return _("attends most to {keys}", keys=_keys(most, labels, ".2f"))


def changed(lost: Sequence[Share], gained: Sequence[Share], labels: Sequence[str], against: str) -> str:
    """Return the keys whose weight for a query decreased or increased most in a variant, compared with a reference."""
    if not (lost or gained):
        return _("every weight is within {least} of its value in {against}", least=SEEN, against=against)
    words = _("largest changes: {keys}", keys=_keys([*lost, *gained], labels, "+.2f"))
    return words if against == _(REFERENCE) else _("{words} (compared with {against})", against=against, words=words)


def _keys(shares: Sequence[Share], labels: Sequence[str], form: str) -> str:
    return enumeration(f"{quoted(labels[each.key])} {formatted(each.weight, form)}" for each in shares)


def head_in_words(scores: HeadScores) -> str:
    """Return a head's position and all its scores, in words."""
    text = enumeration(
        f"{_(column.label)} {format_readable(getattr(scores, name), 2)}"
        for name, column in HeadScores.columns().items()
    )
    return _("layer {layer}, head {head}: {scores}", layer=scores.layer, head=scores.head, scores=text)


def leading(ranking: Sequence[HeadScores], by: str) -> str:
    """Return which head has the highest rank by a score, or why the score ranks no head.

    Args:
        ranking: all heads, ranked by the score.
        by: name of the score.
    """
    first, score = ranking[0], HeadScores.columns()[by].label
    value = getattr(first, by)
    if math.isnan(value) and by == "induction":
        return _(
            "No token repeats in this input, so induction cannot be measured. In the preset “Repeated sequence”, "
            "every word occurs twice."
        )
    if math.isnan(value):
        return _("The score “{score}” needs at least two tokens.", score=_(score))
    values = {"layer": first.layer, "head": first.head, "value": format_readable(value, 2)}
    meaning = {
        "induction": _(
            "**Layer {layer}, head {head}** ranks first: on average, a repeated token gives {value} of its "
            "weight to the tokens that followed its earlier occurrences.",
            **values,
        ),
        "previous": _(
            "**Layer {layer}, head {head}** ranks first: on average, a query gives {value} of its weight to "
            "the previous token.",
            **values,
        ),
        "sink": _(
            "**Layer {layer}, head {head}** ranks first: on average, a query gives {value} of its weight to "
            "the first token shown.",
            **values,
        ),
        "entropy": _(
            "**Layer {layer}, head {head}** has the lowest entropy: {value} nats, averaged over queries.", **values
        ),
        "distance": _(
            "**Layer {layer}, head {head}** is the most local: the average distance between query and key is "
            "{value} tokens, weighted by attention.",
            **values,
        ),
    }
    return meaning[by]
