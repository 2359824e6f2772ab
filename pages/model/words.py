"""Sentences of the Model page about perplexity, copying, and what is measured (layers, model and text).

The copying loss is a model's loss on random tokens that it has read before.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, clauses, enumeration, paragraph
from attention_core.experiments import swap
from attention_core.experiments.continuation import ContinuationRow
from attention_core.experiments.swap import SwapRow
from attention_core.experiments.swap.derived import Score, lost_share
from attention_core.formatting import formatted, number
from pages.model.options import model_title

SAME_RATIO = 1.05
"""Largest ratio of perplexities for which perplexity counts as preserved."""
WORSE_RATIO = 1.5
"""The Layers view reports from how many layers on perplexity exceeds this multiple of the original."""
PRESERVED_LOSS = 0.2
"""Copying counts as preserved if at most this share of the gain from copying is lost.

The gain is the loss of a token on its first occurrence minus the loss on its copy.
"""
FAILED_LOSS = 0.8
"""Copying fails if at least this share of the gain from copying is lost."""
GUESS_LOSS = math.log(swap.VOCABULARY)
"""Loss in nats of a uniform guess over the vocabulary."""
RISES = {
    100: N_("grows more than a hundredfold"),
    10: N_("grows more than tenfold"),
    3: N_("more than triples"),
    2: N_("more than doubles"),
}
"""Verbs for a rise of perplexity to more than a multiple of the original."""
MAX_PERCENT_RATIO = 3.0
"""A perplexity is written as a multiple of the original, instead of a change in percent, from this ratio on."""
MAX_SENTENCES = 3
"""Largest number of variants with one sentence per variant. Of more variants, only the best and worst are named."""


def measured_text(*, layers: str, tokens: str, title: str) -> str:
    """Return the sentences about what is measured: the replaced layers, the model and the text.

    Args:
        layers: the layers as text, such as ``layers 10 to 20``.
        tokens: the number of tokens read as text, such as ``64 tokens``.
        title: name of the text.
    """
    return _(
        "Softmax is replaced in {where} of {model} (4-bit quantised, no retraining). Text: “{title}” ({tokens}).",
        where=layers,
        model=model_title(swap.MODEL),
        tokens=tokens,
        title=title,
    )


def describe_effects(original: Score, changed: Sequence[Score]) -> Lines:
    """Return the findings about how the variants change perplexity and copying, compared with the original model."""
    test = _("Copy test (last column): the model reads {period} random tokens twice.", period=swap.PERIOD)
    first, *others = _copying_effects(original, changed)
    copying = [replace(first, explanation=paragraph(test, first.explanation)), *others]
    if len(changed) > MAX_SENTENCES:
        least, most = (choose(changed, key=lambda each: each.perplexity) for choose in (min, max))
        summary = _(
            "**Perplexity is lowest with {least} ({low}) and highest with {most} ({high}).**",
            least=least.name,
            most=most.name,
            low=number(least.perplexity, 3),
            high=number(most.perplexity, 3),
        )
        reading = [Finding(summary)]
    else:
        if first_token := _first_token_effects(original, changed):
            return [*first_token, copying]
        reading = [_perplexity_effect(original, each) for each in changed]
    return [reading, copying]


def _first_token_effects(original: Score, changed: Sequence[Score]) -> Lines:
    """Return the findings that perplexity rises, and that it rises less if the first token stays visible.

    Return no findings unless exactly two variants are compared, both hide the same number of query–key pairs, and only
    one of them hides the first token from most queries.
    """
    if len(changed) != 2:
        return []
    least, most = sorted(changed, key=lambda each: each.perplexity)
    if not (least.hidden and most.hidden and most.hidden.hides_first and not least.hidden.hides_first):
        return []
    if (least.hidden.share, least.hidden.max_keys) != (most.hidden.share, most.hidden.max_keys):
        return []
    low, high = (number(each.perplexity, 3) for each in (least, most))
    if least.perplexity <= SAME_RATIO * original.perplexity or low == high:
        return []
    worse = _perplexity_effect(original, most).text
    better = _(
        "**With {least}, which also sees the first token (an attention sink), it is only {low}.**",
        least=least.name,
        low=low,
    )
    counted = N_("Both variants see at most {n} tokens.")
    if most.hidden.window == least.hidden.window == most.hidden.max_keys - 1:
        worse = _(
            "**With a window of {n} tokens, perplexity {rises} from {before} to {after}.**",
            n=most.hidden.window,
            **_rise(original, most),
        )
        better = _("**With the first token also visible (an attention sink), it is only {low}.**", low=low)
        counted = N_(
            "Both variants see at most {n} tokens. {most} sees the query and the {window} tokens before it. {least} "
            "gives up the farthest one to keep the first."
        )
    cause = paragraph(
        _(counted, n=most.hidden.max_keys, window=most.hidden.max_keys - 1, most=most.name, least=least.name),
        _(
            "In many heads, queries without a relevant key put their weight on the first token. {most} hides this "
            "token, so the weight goes to other tokens.",
            most=most.name,
        ),
    )
    return [[Finding(worse)], [Finding(better, cause)]]


def _perplexity_effect(original: Score, each: Score) -> Finding:
    ratio = each.perplexity / original.perplexity
    values = {"name": each.name, "same": SAME_RATIO - 1, **_rise(original, each)}
    if ratio > SAME_RATIO:
        text = _("**With {name}, perplexity {rises} from {before} to {after}.**", **values)
        return Finding(text, _hidden_pairs(each))
    if ratio < 1 / SAME_RATIO:
        return Finding(_("**With {name}, perplexity falls from {before} to {after}.**", **values))
    if each.covered:
        text = _n(
            "**{name} changes perplexity by at most {same:.0%}**, because it attends to the only token.",
            "**{name} changes perplexity by at most {same:.0%}**, because it attends to all {n} tokens.",
            n=each.covered,
            **values,
        )
        return Finding(text)
    return Finding(_("**{name} changes perplexity by at most {same:.0%}.**", **values))


def _rise(original: Score, each: Score) -> dict[str, str]:
    """Return both perplexities, and the verb for a rise from the first to the second, as values of a sentence."""
    # The rounded numbers on screen determine the verb, so that the sentence agrees with them.
    before, after = number(original.perplexity, 3), number(each.perplexity, 3)
    ratio = float(f"{each.perplexity:.3g}") / float(f"{original.perplexity:.3g}")
    verb = next((verb for least, verb in RISES.items() if ratio > least), N_("rises"))
    return {"rises": _(verb), "before": before, "after": after}


def _hidden_pairs(each: Score) -> str:
    """Return the sentence about the share of query–key pairs that a mask hides, and whether it hides the first token.

    It is empty if the mask hides no pairs.
    """
    if not each.hidden or not each.hidden.share:
        return ""
    text = (
        N_("{name} hides {hidden:.0%} of the query–key pairs, and it hides the first token from most queries.")
        if each.hidden.hides_first
        else N_("{name} hides {hidden:.0%} of the query–key pairs, but not the first token.")
    )
    return _(text, name=each.name, hidden=each.hidden.share)


def other_texts(ratios: Mapping[str, Sequence[float]]) -> str:
    """Return the sentence about perplexity on other recorded texts, or that none are recorded with these settings.

    Args:
        ratios: perplexity relative to the original model, one number per text, by the variant's name.
    """
    found = {name: each for name, each in ratios.items() if each}
    if not found or len(ratios) > MAX_SENTENCES:
        return _("These numbers are for one text. Other texts give other numbers.")
    effects: dict[int, list[str]] = {}
    for name, each in found.items():
        effects.setdefault(len(each), []).append(_effect_on_texts(name, min(each), max(each)))
    return paragraph(
        *(
            _n("On {n} other text, {effects}.", "On {n} other texts, {effects}.", n=n, effects=clauses(of_variants))
            for n, of_variants in effects.items()
        )
    )


def _effect_on_texts(name: str, least: float, most: float) -> str:
    """Return a clause about the effect of a variant on the perplexity of several texts.

    Args:
        name: the variant's name in a sentence.
        least: the smallest perplexity, relative to the original model.
        most: the largest one.
    """
    if least >= 1 / SAME_RATIO and most <= SAME_RATIO:
        # Rounded up, after an error in the last digits of a float is removed.
        bound = max(1, math.ceil(round(100 * max(1 - least, most - 1), 6)))
        return _("{name} changes perplexity by at most {percent}%", name=name, percent=bound)
    if most > MAX_PERCENT_RATIO:
        text, ends = N_("perplexity with {name} is {change} times the original"), [number(r, 3) for r in (least, most)]
    elif least > 1:
        text, ends = N_("{name} raises perplexity by {change}"), [f"{ratio - 1:.0%}" for ratio in (least, most)]
    elif most < 1:
        text, ends = N_("{name} lowers perplexity by {change}"), [f"{1 - ratio:.0%}" for ratio in (most, least)]
    else:
        text = N_("{name} changes perplexity by {change}")
        ends = [formatted(ratio - 1, "+.0%") for ratio in (least, most)]
    change = ends[0] if ends[0] == ends[1] else _("{low} to {high}", low=ends[0], high=ends[1])
    return _(text, name=name, change=change)


def describe_copying(original: Score, changed: Sequence[Score]) -> Lines:
    """Return the findings about the effect of the variants on copying, with each copying loss if they are few."""
    losses = ""
    if changed and len(changed) <= MAX_SENTENCES:
        losses = _(
            "Mean loss of a copied token: {before} nats in the original model, {after}.",
            before=number(original.copied, 3),
            after=enumeration(_("{loss} with {name}", loss=number(each.copied, 3), name=each.name) for each in changed),
        )
    return [[*_copying_effects(original, changed), Finding("", losses)]]


def _copying_effects(original: Score, changed: Sequence[Score]) -> list[Finding]:
    """Return one finding for each group of variants: those with which copying fails, gets worse, or is preserved."""
    failing: list[Score] = []
    worse: list[Score] = []
    preserved: list[Score] = []
    for each in changed:
        lost = lost_share(original, each)
        (failing if lost >= FAILED_LOSS else worse if lost > PRESERVED_LOSS else preserved).append(each)

    def names(group: Sequence[Score]) -> str:
        return listed_names([each.name for each in group], len(changed))

    findings = []
    if failing:
        text = _(
            "**Copying a token from {n} tokens back fails with {names}: the loss is higher than that of a uniform "
            "guess.**",
            n=swap.COPY_DISTANCE,
            names=names(failing),
        )
        # The losses are rounded as in the table, so that the comparison agrees with the numbers on screen.
        if min(round(each.copied, 1) for each in failing) <= round(GUESS_LOSS, 1):
            text = _(
                "**Copying a token from {n} tokens back fails with {names}.**",
                n=swap.COPY_DISTANCE,
                names=names(failing),
            )
        findings.append(Finding(text, _copying_cause(failing)))
    if worse:
        text = _(
            "**Copying a token from {n} tokens back gets worse with {names}.**",
            n=swap.COPY_DISTANCE,
            names=names(worse),
        )
        findings.append(Finding(text, _copying_cause(worse)))
    if preserved:
        findings.append(Finding(_("**Copying is preserved with {names}.**", names=names(preserved))))
    return findings


def _copying_cause(group: Sequence[Score]) -> str:
    """Return why copying gets worse with a group of variants; empty unless their masks hide the tokens to copy."""
    hidden = [each.hidden for each in group if each.hidden and each.hidden.hides_copied]
    if not group or len(hidden) < len(group):
        return ""
    relays, windows = {each.layers_to_copy for each in hidden}, {each.window for each in hidden}
    return paragraph(
        _("The token to copy is beyond the window of {window} tokens.", window=windows.pop())
        if len(windows) == 1 and None not in windows
        else _("Most queries cannot attend to the token to copy."),
        _(
            "A chain of {n} layers could pass it on to the query, but the model was trained without this variant.",
            n=relays.pop(),
        )
        if len(relays) == 1 and None not in relays
        else "",
    )


def listed_names(names: Sequence[str], total: int) -> str:
    """Return the names of variants as a list in words, or "all n variants" if there are only these (``total``)."""
    if len(names) == total > 1:
        return _("both variants") if total == 2 else _("all {n} variants", n=total)
    return enumeration(names)


def results_origin(rows: Sequence[SwapRow | ContinuationRow]) -> str:
    """Return the sentence about where the results come from: recorded (date and processor), or computed now."""
    stamps = sorted({row.recorded for row in rows if row.recorded})
    live = sum(not row.recorded for row in rows)
    if not stamps:
        return _("Computed on this machine.")
    parts = (stamp.split(", ", 1) for stamp in stamps)
    text = _("Recorded on {stamps}.", stamps=clauses(_("{date}, {cpu}", date=date, cpu=cpu) for date, cpu in parts))
    if not live:
        return text
    return paragraph(
        text,
        _n(
            "{n} of {all} results was computed on this machine.",
            "{n} of {all} results were computed on this machine.",
            n=live,
            all=len(rows),
        ),
    )
