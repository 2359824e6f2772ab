"""Sentences of the Model page about perplexity, copying, and the origin of the results (layers, model and text).

The copying loss is a model's loss on random tokens that it has read before.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, enumeration, paragraph, predicates
from attention_core.experiments import swap
from attention_core.experiments.continuation import ContinuationRow
from attention_core.experiments.swap import SwapRow
from attention_core.experiments.swap.derived import Score, lost_share
from attention_core.formatting import formatted, number, percent
from pages.model.options import depth

SAME_RATIO = 1.05
"""Largest ratio of perplexities for which perplexity counts as preserved."""
WORSE_RATIO = 1.5
"""The Layers view reports from how many layers on perplexity exceeds this multiple of the original."""
PRESERVED_LOSS = 0.2
"""Copying counts as preserved if at most this share of the gain from copying is lost.

The gain is the loss of a token on its first occurrence minus the loss on its copy.
"""
FAILED_LOSS = 0.8
"""The model can hardly copy if at least this share of the gain from copying is lost."""
NO_HELP, LITTLE_HELP = 0.01, 0.2
"""Largest shares of the original model's gain from copying at which a repetition does not help, and helps little."""
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
MAX_REPAIRED_RATIO = 2.0
"""Largest ratio to the original perplexity at which a visible first token counts as a remedy."""
MAX_SENTENCES = 3
"""Largest number of variants with one sentence per variant. Of more variants, only the best and worst are named."""


def describe_effects(original: Score, changed: Sequence[Score]) -> Lines:
    """Return the findings about how the variants change perplexity and copying, compared with the original model.

    ``describe_copying`` also explains the changes of copying.
    """
    test = _(
        "The copying loss (last column) is the mean loss when the model reads {period} random tokens a second time.",
        period=swap.PERIOD,
    )
    first, *others = (replace(each, explanation="") for each in _copying_effects(original, changed))
    copying = [replace(first, explanation=test), *others]
    if len(changed) > MAX_SENTENCES:
        least, most = (choose(changed, key=lambda each: each.perplexity) for choose in (min, max))
        low, high = (number(each.perplexity, 3) for each in (least, most))
        summary = _(
            "**On this text, perplexity is {low} with all {n} variants.**"
            if low == high
            else "**On this text, perplexity is lowest with {least} ({low}) and highest with {most} ({high}).**",
            least=least.name,
            most=most.name,
            low=low,
            high=high,
            n=len(changed),
        )
        reading = [Finding(summary)]
    else:
        if first_token := _first_token_effects(original, changed):
            return [*first_token, copying]
        reading = [_perplexity_effects(original, changed)]
    return [reading, copying]


def _first_token_effects(original: Score, changed: Sequence[Score]) -> Lines:
    """Return the findings that perplexity rises, and that it rises less if the first token stays visible.

    Return no findings unless exactly two variants are compared, both hide the same number of query–key pairs, and only
    one of them hides the first token, from most queries.
    """
    if len(changed) != 2:
        return []
    least, most = sorted(changed, key=lambda each: each.perplexity)
    if not (least.hidden and most.hidden and most.hidden.without_first > 0.5 and not least.hidden.without_first):
        return []
    if (least.hidden.share, least.hidden.max_keys) != (most.hidden.share, most.hidden.max_keys):
        return []
    low, high = (number(each.perplexity, 3) for each in (least, most))
    if not SAME_RATIO < least.perplexity / original.perplexity <= MAX_REPAIRED_RATIO or low == high:
        return []
    better = _(
        "**With {least}, where queries also see the first token (an attention sink), perplexity rises only to {low}.**",
        least=least.name,
        low=low,
    )
    counted, worse = N_("Both variants see at most {n} tokens."), most
    if most.hidden.window == least.hidden.window == most.hidden.max_keys - 1:
        worse = replace(most, name=_n("a window of {n} token", "a window of {n} tokens", n=most.hidden.window))
        better = _(
            "**If the first token (an attention sink) replaces the farthest one, perplexity rises only to {low}.**",
            low=low,
        )
        counted = N_(
            "Both variants see at most {n} tokens. With {most}, these are the query's token and the {window} before it."
        )
    cause = paragraph(
        _(counted, n=most.hidden.max_keys, window=most.hidden.max_keys - 1, most=most.name, least=least.name),
        _(
            "In many heads, queries without a relevant key put their weight on the first token. With {most}, this "
            "token is hidden, so the weight goes to other tokens.",
            most=most.name,
        ),
    )
    return [[Finding(_perplexity_effects(original, [worse]).text)], [Finding(better, cause)]]


def _perplexity_effects(original: Score, changed: Sequence[Score]) -> Finding:
    """Return the sentence about the effect of each variant on perplexity, and what the variants that raise it hide."""
    effects = [_perplexity_effect(original, each) for each in changed if not each.covered]
    if covered := [each.name for each in changed if each.covered]:
        text = N_("does not change with {names}, because no token of this text is hidden")
        effects.append(_(text, names=listed_names(covered, len(changed))))
    text = _("**On this text, perplexity {effects}.**", effects=predicates(effects))
    raising = (each for each in changed if each.perplexity > SAME_RATIO * original.perplexity)
    return Finding(text, paragraph(*map(_hidden_pairs, raising)))


def _perplexity_effect(original: Score, each: Score) -> str:
    ratio = each.perplexity / original.perplexity
    if 1 / SAME_RATIO <= ratio <= SAME_RATIO:
        return _("changes by at most {same:.0%} with {name}", name=each.name, same=SAME_RATIO - 1)
    # The rounded numbers on screen determine the verb, so that the sentence agrees with them.
    shown = float(f"{each.perplexity:.3g}") / float(f"{original.perplexity:.3g}")
    verb = next((verb for least, verb in RISES.items() if shown > least), N_("rises") if ratio > 1 else N_("falls"))
    return _(
        "{verb} with {name}, from {before} to {after}",
        verb=_(verb),
        name=each.name,
        before=number(original.perplexity, 3),
        after=number(each.perplexity, 3),
    )


def _hidden_pairs(each: Score) -> str:
    """Return the sentence about the share of query–key pairs that a mask hides, and who does not see the first token.

    It is empty if the mask hides no pairs.
    """
    if not each.hidden or not each.hidden.share:
        return ""
    text = (
        N_(
            "With {name}, {hidden} of the query–key pairs are hidden, and {blind} of the queries do not see the first "
            "token."
        )
        if each.hidden.without_first
        else N_("With {name}, {hidden} of the query–key pairs are hidden, but not the first token.")
    )
    return _(text, name=each.name, hidden=percent(each.hidden.share), blind=percent(each.hidden.without_first))


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
            _n(
                "On {n} other text, perplexity {effects}.",
                "On {n} other texts, perplexity {effects}.",
                n=n,
                effects=predicates(of_variants),
            )
            for n, of_variants in effects.items()
        )
    )


def _effect_on_texts(name: str, least: float, most: float) -> str:
    """Return a clause about the smallest and largest perplexity of several texts, relative to the original model."""
    if least >= 1 / SAME_RATIO and most <= SAME_RATIO:
        return _("changes by at most {percent}% with {name}", name=name, percent=percent_bound(least, most))
    if most > MAX_PERCENT_RATIO:
        text, ends = N_("is {change} times the original with {name}"), [number(r, 3) for r in (least, most)]
    elif round(100 * least) >= 100:
        text, ends = N_("rises by {change} with {name}"), [formatted(ratio - 1, ".0%") for ratio in (least, most)]
    elif round(100 * most) <= 100:
        text, ends = N_("falls by {change} with {name}"), [formatted(1 - ratio, ".0%") for ratio in (most, least)]
    else:
        text = N_("changes by {change} with {name}")
        ends = [formatted(ratio - 1, "+.0%") for ratio in (least, most)]
    change = N_("up to {high}") if ends[0] == formatted(0, ".0%") else N_("{low} to {high}")
    change = ends[0] if ends[0] == ends[1] else _(change, low=ends[0], high=ends[1])
    return _(text, name=name, change=change)


def percent_bound(least: float, most: float) -> int:
    """Return by how many percent ratios from ``least`` to ``most`` differ from 1 at most, rounded up; at least 1."""
    # An error in the last digits of a float is removed first.
    return max(1, math.ceil(round(100 * max(1 - least, most - 1), 6)))


def describe_copying(original: Score, changed: Sequence[Score]) -> Lines:
    """Return the findings about the effect of the variants on copying."""
    return [_copying_effects(original, changed)]


def _copying_effects(original: Score, changed: Sequence[Score]) -> list[Finding]:
    """Return one finding for each group of variants: with them, copying hardly works, gets worse, or is preserved."""
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
            "**With {names}, the model can hardly copy a token from {n} tokens back.**",
            n=swap.COPY_DISTANCE,
            names=names(failing),
        )
        if len(failing) <= MAX_SENTENCES:
            repetition = _(
                "The repetition {effects}.", effects=predicates(_repetition_effect(original, each) for each in failing)
            )
        else:
            least, most = (number(choose(each.copied for each in failing), 3) for choose in (min, max))
            repetition = _(
                "The mean loss of a copied token is {least} to {most} nats, instead of {before} in the original model."
                if least != most
                else "The mean loss of a copied token is {least} nats, instead of {before} in the original model.",
                least=least,
                most=most,
                before=number(original.copied, 3),
            )
        wrong = [each.name for each in failing if each.copied > GUESS_LOSS]
        confident = _(
            "With {names}, the loss is higher than that of a uniform guess ({guess:.1f} nats), because the model is "
            "confident in wrong tokens.",
            names=listed_names(wrong, len(changed)),
            guess=GUESS_LOSS,
        )
        explanation = paragraph(repetition, confident if wrong else "", _copying_cause(failing))
        findings.append(Finding(text, explanation))
    if worse:
        text = _(
            "**Copying a token from {n} tokens back gets worse with {names}.**",
            n=swap.COPY_DISTANCE,
            names=names(worse),
        )
        findings.append(Finding(text, _copying_cause(worse)))
    if preserved:
        least, most = (number(choose(each.copied for each in preserved), 3) for choose in (min, max))
        text = _(
            "**Copying still works with {names} (loss {losses} nats, {before} in the original model).**",
            names=names(preserved),
            losses=least if least == most else _("{low} to {high}", low=least, high=most),
            before=number(original.copied, 3),
        )
        findings.append(Finding(text))
    return findings


def _repetition_effect(original: Score, each: Score) -> str:
    """Return the predicate about how much lower a variant's loss is on the second occurrence of the tokens."""
    saved_share = (each.first - each.copied) / (original.first - original.copied)
    if saved_share <= NO_HELP:
        text = N_("does not help with {name} (loss {first}, then {copied} nats)")
    elif saved_share <= LITTLE_HELP:
        text = N_("helps little with {name} (loss {first}, then {copied} nats)")
    else:
        text = N_("helps only partly with {name} (loss {first}, then {copied} nats)")
    return _(text, name=each.name, first=number(each.first, 3), copied=number(each.copied, 3))


def _copying_cause(group: Sequence[Score]) -> str:
    """Return why copying gets worse with a group of variants; empty unless their masks hide the tokens to copy.

    If only some masks hide these tokens, the text names their variants.
    """
    hiding = [each for each in group if each.hidden and each.hidden.hides_copied]
    if not hiding:
        return ""
    if len(hiding) < len(group):
        return _(
            "With {names}, most queries of a replaced layer cannot attend to the token to copy.",
            names=enumeration(each.name for each in hiding),
        )
    hidden = [each.hidden for each in hiding if each.hidden]
    relays, windows = {each.layers_to_copy for each in hidden}, {each.window for each in hidden}
    n = group[0].layers
    if len(windows) == 1 and None not in windows:
        text = (
            _("The token to copy lies outside the window of {window}.", window=windows.pop())
            if n == depth()
            else _n(
                "In the replaced layer, the token to copy lies outside the window of {window}.",
                "In the replaced layers, the token to copy lies outside the window of {window}.",
                n=n,
                window=windows.pop(),
            )
        )
    else:
        text = (
            _("Most queries cannot attend to the token to copy.")
            if n == depth()
            else _n(
                "In the replaced layer, most queries cannot attend to the token to copy.",
                "In the replaced layers, most queries cannot attend to the token to copy.",
                n=n,
            )
        )
    return paragraph(
        text,
        _("A chain of {n} layers could pass it on, but the model was not trained for this.", n=relay)
        if len(relays) == 1 and (relay := relays.pop()) and relay <= n
        else "",
    )


def listed_names(names: Sequence[str], total: int) -> str:
    """Return the names of variants as a list in words, or "all n variants" if there are only these (``total``)."""
    if len(names) == total > 1:
        return _("both variants") if total == 2 else _("all {n} variants", n=total)
    return enumeration(names)


def results_origin(rows: Sequence[SwapRow | ContinuationRow]) -> str:
    """Return the sentence about where the results come from: recorded on a date, or computed now."""
    dates = sorted({row.recorded.partition(", ")[0] for row in rows if row.recorded})
    live = any(not row.recorded for row in rows)
    if not dates:
        return _("Computed on this machine.")
    text = _("Recorded on {dates}.", dates=enumeration(dates))
    return paragraph(text, _("The other results were computed on this machine.") if live else "")
