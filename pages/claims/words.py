"""The texts of the Claims page: verdicts, findings, and how far a number is from the bound that decides its verdict."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from app.ui.input_panel import ChosenInput
from app.words.i18n import C_, N_, _, _n, escape_markdown, paragraph
from app.words.labels import paper_heading, paper_title
from attention_core.claims import LONGEST, Claim, ClaimTask, Outcome, Quantity, Verdict
from attention_core.claims.rule import Margin
from attention_core.formatting import format_readable, number
from attention_core.inputs.image_source import ImageSource
from attention_core.variant import Paper

Colour = Literal["green", "orange", "red", "blue", "gray"]

VERDICT_ICONS: dict[Verdict, tuple[str, Colour]] = {
    Verdict.HOLDS: (":material/check_circle:", "green"),
    Verdict.PARTLY: (":material/contrast:", "orange"),
    Verdict.FAILS: (":material/cancel:", "red"),
    Verdict.UNTESTABLE: (":material/help:", "blue"),
}
"""Icon and colour of each verdict."""
NARROW_MARGIN, WIDE_MARGIN = 0.1, 0.5
"""Relative distance of a number from its threshold below which a margin is narrow, and above which it is wide."""
NEED_PHRASES = {
    ">=": N_("at least {bound}"),
    "<=": N_("at most {bound}"),
    ">": N_("more than {bound}"),
    "<": N_("less than {bound}"),
    "=": N_("exactly {bound}"),
}
"""Phrases for what a rule requires, by its comparison; "=" if only the largest possible value meets the rule."""
ICONS = {True: ":green[:material/check:]", False: ":red[:material/close:]"}
"""Icons of met and unmet conditions."""
OVER_HEADS = (
    N_("median over heads"),
    N_("medians over heads"),
    N_("mean over heads"),
    N_("at the third quartile over heads"),
    N_("third quartile over heads"),
    N_("largest over heads"),
    N_("smallest over heads"),
)
"""Phrases that say how the numbers of several heads are summarized."""
NUMBERS = re.compile(r"\{(\w+)\}")
"""Placeholders of numbers in a finding."""


def verdict_name(verdict: Verdict) -> str:
    """Return a verdict in words. Files keep the words of ``Verdict``."""
    return _("partly holds") if verdict is Verdict.PARTLY else _(verdict.value)


def badge(verdict: Verdict) -> str:
    """Return a verdict as icon and word, as Markdown."""
    icon, colour = VERDICT_ICONS[verdict]
    return f":{colour}-badge[{icon} {verdict_name(verdict)}]"


def badges(outcome: Outcome) -> str:
    """Return the verdict, and whether the claim is a theorem, as Markdown; one that partly holds is not called one."""
    is_theorem = outcome.claim.theorem and outcome.verdict is not Verdict.PARTLY
    return badge(outcome.verdict) + (f" :gray-badge[{_('a theorem')}]" if is_theorem else "")


def verdict_line(outcome: Outcome) -> str:
    """Return the verdict, whether the claim is a theorem, and its ``margin``, as Markdown."""
    text = margin_text(outcome)
    return f"{badges(outcome)} :small[{escape_markdown(text)}]" if text else badges(outcome)


def margin_width(decisive: Margin) -> str:
    """Return how far the number that decides a verdict is from its threshold, in words."""
    if decisive.value == decisive.threshold:
        return _("exactly at the threshold")
    if decisive.relative < NARROW_MARGIN:
        return _("close to the threshold")
    return (
        _("far from the threshold") if decisive.relative > WIDE_MARGIN else _("at a clear distance from the threshold")
    )


def margin_text(outcome: Outcome, *, brief: bool = False) -> str:
    """Return the text about how far a number is from its threshold; empty for unjudged claims and theorems.

    Args:
        outcome: the claim's outcome.
        brief: whether to return only a number that explains the verdict, and what the claim needs to hold.
    """
    claim = outcome.claim
    if outcome.untestable_reason or claim.theorem:
        return ""
    if brief:
        return _condition_text(outcome, claim.explanation(outcome.numbers), with_whole_percents(outcome))
    decisive = claim.margin(outcome.numbers)
    quantity, value, bound = _compared(claim, decisive)
    if quantity.of_heads and outcome.heads == 1:
        return ""
    return _(
        "{label}: {value} ({closeness} of {bound})",
        closeness=margin_width(decisive),
        label=label(outcome, quantity),
        value=value,
        bound=bound,
    )


def conditions(outcome: Outcome) -> str:
    """Return the conditions of a claim that partly holds, as lines of Markdown; empty for other verdicts.

    The met conditions come first, without those on a number for which another condition is not met.
    """
    claim = outcome.claim
    if outcome.verdict is not Verdict.PARTLY:
        return ""
    lines = [
        f"{ICONS[met]} " + escape_markdown(_condition_text(outcome, each, claim, N_("{label}: {value} ({needs})")))
        for met, each in _tested(outcome)
    ]
    return "  \n".join([_("Measured (required):"), *lines])


def unmet_conditions(outcome: Outcome) -> str:
    """Return why a claim does not hold, or holds only partly, as lines of Markdown; empty for other verdicts.

    For a claim that does not hold, the text is one unmet condition. For a claim that holds partly, it is the number of
    met conditions, if any is met, and all unmet ones.
    """
    median = _("median over heads") in finding(outcome, brief=True)

    def line(text: str) -> str:
        text = _without_heads(text) if median else text
        return escape_markdown(text[:1].upper() + text[1:])

    if outcome.verdict is Verdict.FAILS:
        return line(margin_text(outcome, brief=True))
    if outcome.verdict is not Verdict.PARTLY:
        return ""
    tested, claim = _tested(outcome), with_whole_percents(outcome)
    met = sum(met for met, _margin in tested)
    count = _n("{count} of {n} condition is met", "{count} of {n} conditions are met", n=len(tested), count=met)
    icon, colour = VERDICT_ICONS[Verdict.PARTLY]
    lines = [f":{colour}[{icon}] {count}"] if met else []
    unmet = [_condition_text(outcome, each, claim) for met, each in tested if not met]
    return "  \n".join([*lines, *(f"{ICONS[False]} {line(text)}" for text in unmet)])


def _tested(outcome: Outcome) -> list[tuple[bool, Margin]]:
    """Return the conditions of a claim and whether each is met, the met ones first.

    Of several conditions on one number, only the strictest met one is returned, and none if another one is not met.
    """
    tested = [(met, each) for met, each in outcome.claim.conditions(outcome.numbers)]
    unmet = [each for met, each in tested if not met]
    strictest: dict[str, Margin] = {}
    for met, each in tested:
        if met and each.quantity not in {other.quantity for other in unmet}:
            known = strictest.get(each.quantity, each)
            strictest[each.quantity] = min(known, each, key=lambda margin: margin.relative)
    return [*((True, each) for each in strictest.values()), *((False, each) for each in unmet)]


def _without_heads(text: str) -> str:
    """Return a text without the phrases that say which heads a number summarizes."""
    phrases = "|".join(re.escape(_(phrase)) for phrase in OVER_HEADS)
    return re.sub(f"(, |，)({phrases})| ?[(（]({phrases})[)）]", "", text)


def label(outcome: Outcome, quantity: Quantity) -> str:
    """Return the description of a quantity; for a single head, without how heads are summarized."""
    return _without_heads(_(quantity.label)) if outcome.heads == 1 else _(quantity.label)


def _condition_text(
    outcome: Outcome, margin: Margin, claim: Claim, template: str = N_("{label}: {value} (needs {needs})")
) -> str:
    """Return the label and value of a quantity and what the rule needs; shares of heads become numbers of heads.

    If the claim fails and its finding ends with this value, the text is only a sentence about what the rule needs. For
    a single head, the text says whether the label is true of it; it is empty if the finding of a failed claim says so.
    """
    quantity, value, bound = _compared(claim, margin)
    needs_maximum = margin.comparison == ">=" and quantity.unit == "%" and margin.threshold == 100
    heads = _("{share} of the heads", share=bound)
    named = NUMBERS.findall(outcome.claim.finding)
    if quantity.of_heads and outcome.heads == 1:
        if outcome.verdict is Verdict.FAILS and quantity.name in named:
            return ""
        one = _("this head") if margin.value else _("not this head")
        return _("{label}: {value}", label=label(outcome, quantity), value=one)
    if quantity.of_heads and outcome.heads:
        threshold = round(outcome.heads * margin.threshold / 100, 6)
        value = _("{count} of {heads}", count=_head_count(outcome, margin.value), heads=outcome.heads)
        required = (math.ceil if margin.comparison in (">=", "<") else math.floor)(threshold)
        is_half = margin.threshold == 50
        bound = _("half") if is_half else _(C_("number of heads", "{n}"), n=required)
        heads = _("half of the heads") if is_half else _heads_text(required, outcome.heads)
        needs_maximum = margin.comparison == ">=" and required == outcome.heads
    needs = _(NEED_PHRASES["=" if needs_maximum else margin.comparison], bound=bound)
    if margin.factor is not None:
        needs = _("{needs}, {n} times what equal weights give", needs=needs, n=format_readable(margin.factor, None))
    if outcome.verdict is Verdict.FAILS and named[-1:] == [quantity.name]:
        if quantity.of_heads and needs_maximum:
            return _("The claim needs {heads}.", heads=heads)
        if quantity.of_heads and margin.comparison == ">=":
            return _("The claim needs at least {heads}.", heads=heads)
        if len(named) == 1:
            return _("The claim holds only if this number is {needs}.", needs=needs)
    return _(template, label=label(outcome, quantity), value=value, needs=needs)


def _head_count(outcome: Outcome, per_cent: float) -> int:
    """Return a share of the measured heads as a number of heads."""
    return round(outcome.heads * per_cent / 100)


def _heads_text(count: int, n: int) -> str:
    """Return a number of n heads in words; a single head is the selected one."""
    if not count:
        return _("no head")
    if count == n:
        return _("all {heads} heads", heads=n) if n > 1 else _("this head")
    return _n("{count} of {n} head", "{count} of {n} heads", n=n, count=count)


def _compared(claim: Claim, margin: Margin) -> tuple[Quantity, str, str]:
    """Return the quantity that a rule compares with a threshold, its value and the threshold, as texts."""
    [quantity] = (each for each in claim.quantities if each.name == margin.quantity)
    scale, percent = 100 if quantity.share else 1, quantity.share or quantity.unit == "%"
    value, bound = (
        quantity.plain(scale * each) if measured else format_readable(scale * each, None)
        for each, measured in ((margin.value, True), (margin.threshold, margin.measured))
    )
    suffix = "%" if percent else unit(quantity)
    return quantity, value + suffix, bound + suffix


def finding(outcome: Outcome, *, brief: bool = False) -> str:
    """Return the finding of a claim, as Markdown; with ``brief``, in whole per cents, without the details and notes."""
    if outcome.untestable_reason or not brief:
        return escape_markdown(plain_finding(outcome))
    numbers = with_whole_percents(outcome).formatted_numbers(outcome.numbers)
    return escape_markdown(_sentence(outcome, outcome.sentences[0], numbers))


def plain_finding(outcome: Outcome) -> str:
    """Return the finding of a claim, as plain text."""
    return paragraph(*(_sentence(outcome, each, outcome.formatted_numbers) for each in outcome.sentences))


def with_whole_percents(outcome: Outcome) -> Claim:
    """Return the outcome's claim with quantities that are shown as whole per cents from 10% on.

    The claim is returned unchanged if two numbers of its finding, or a number and its threshold, would look the same.
    """
    known, numbers = outcome.claim, outcome.numbers
    scales = {each.name: 100 if each.share else 1 for each in known.quantities if each.share or each.unit == "%"}
    sizes = {name: scale * numbers[name] for name, scale in scales.items()}
    together = [[100.0, *(sizes[name] for name in NUMBERS.findall(known.finding) if name in sizes)]]
    for _met, margin in known.conditions(numbers):
        if scale := scales.get(margin.quantity):
            together.append([scale * margin.value, scale * margin.threshold])
    if any(len({number(x, _digits(x)) for x in each}) < len({number(x, 3) for x in each}) for each in together):
        return known
    return replace(
        known,
        quantities=tuple(
            replace(each, digits=_digits(sizes.get(each.name, 0.0), each.digits)) for each in known.quantities
        ),
    )


def _digits(percent: float, digits: int = 3) -> int:
    """Return how many significant digits show a number as a whole per cent, at most ``digits``, from 10% to 100%."""
    return 2 if 10 <= percent < 100 else digits


def _sentence(outcome: Outcome, template: str, numbers: Mapping[str, object]) -> str:
    """Return a sentence of a claim with its numbers.

    A share of heads becomes a number of heads if the number of all heads is known, and "100% of all pairs" becomes
    "all pairs".
    """
    text, share, pairs = _(template), _("{share} of the heads"), _("{share} of all pairs of tokens")
    for each in () if outcome.untestable_reason else outcome.claim.quantities:
        value, place = outcome.numbers.get(each.name, 0.0), f"{{{each.name}}}%"
        if each.of_heads and outcome.heads:
            heads = _heads_text(_head_count(outcome, value), outcome.heads)
            text = text.replace(share.replace("{share}", place), heads)
        elif value == 100:
            text = text.replace(pairs.replace("{share}", place), _("all pairs of tokens"))
    return _(_without_heads(text) if outcome.heads == 1 else text, **numbers)


def article(source: Paper) -> str:
    """Return the authors and year of an article as a small link in Markdown, whose tooltip is the title."""
    return f':small[[{source.authors}, {source.year}]({source.url} "{escape_markdown(paper_title(source))}")]'


def figure_description(claim: Claim) -> str:
    """Return the alternative text of a claim's figure."""
    return _("Vertical axis: {y}. Horizontal axis: {x}.", y=_(claim.figure.y.title), x=_(claim.figure.x.title))


def on_request_reason(task: ClaimTask) -> str:
    """Return why a claim is checked only on request."""
    if task.timed:
        return _("This claim is checked only on request, because the check measures computing times.")
    return _("This claim is checked only on request, because SmolLM2 must process the text a dozen times.")


def title(claim: Claim) -> str:
    """Return the number and the short name of a claim, as bold Markdown."""
    return f"**{claim.number}. {escape_markdown(capitalised(claim))}**"


def capitalised(claim: Claim) -> str:
    """Return the short name of a claim, which begins with a capital letter."""
    short = _(claim.short)
    return short[:1].upper() + short[1:]


def headline(claim: Claim) -> str:
    """Return the number and the statement of a claim, as a Markdown heading."""
    return f"## {claim.number}. {escape_markdown(_(claim.statement))}"


def source_text(source: Paper) -> str:
    """Return the source of a claim, as Markdown."""
    return _(
        "Source: [{title}]({url}), {year}",
        title=escape_markdown(f"{source.authors}, {paper_heading(source)}"),
        url=source.url,
        year=source.year,
    )


def rule_text(claim: Claim) -> str:
    """Return the rule by which a claim is judged, with its thresholds, as Markdown."""
    return escape_markdown(
        paragraph(_(claim.rule, **claim.thresholds()), _("In all other cases, the claim does not hold."))
    )


def unit(quantity: Quantity) -> str:
    """Return the suffix of a quantity's value: its unit, after a no-break space except before a per cent sign."""
    return quantity.unit and ("" if quantity.unit == "%" else "\N{NO-BREAK SPACE}") + _(quantity.unit)


def numbers_table(outcome: Outcome) -> str:
    """Return the quantities that decided the verdict, as a Markdown table, in which long labels wrap."""
    formatted = outcome.claim.formatted_numbers(outcome.numbers)
    lines = [f"| {_('Quantity')} | {_('Value')} |", "| :-- | --: |"]
    for each in outcome.claim.quantities:
        value = escape_markdown(formatted[each.name] + unit(each))
        lines.append(f"| {escape_markdown(label(outcome, each))} | **{value}** |")
    return "\n".join(lines)


def theorem_note(claim: Claim) -> str:
    """Return why a theorem's verdict is always the same, as Markdown; empty if the verdict depends on the input."""
    return _("**The same on every input.** {why}", why=escape_markdown(_(claim.theorem))) if claim.theorem else ""


def scope(chosen: ChosenInput, longest: int, claim: Claim | None = None) -> str:
    """Return the tokens and heads that a claim, or all claims, are checked on.

    Args:
        chosen: the input.
        longest: largest number of tokens measured.
        claim: the claim; None for all claims.
    """
    if claim and claim.is_recorded:
        return _(
            "This claim is judged on recorded training runs with three random seeds. The verdict does not depend on "
            "the input."
        )
    if claim and claim.uses_decoder:
        return _(
            "This claim is checked with the language model SmolLM2. The verdict does not depend on the chosen model, "
            "layer and heads."
        )
    if claim and claim.uses_image:
        return (
            _("The check uses the whole image.")
            if isinstance(chosen.source, ImageSource)
            else _("The check uses an included photograph, because the input is not an image.")
        )
    if chosen.qkv.heads == 1:
        heads = _("one head")
    elif chosen.head is None:
        heads = _("all {heads} heads", heads=chosen.qkv.heads)
    else:
        heads = _("head {head} of {heads}", head=chosen.head, heads=chosen.qkv.heads)
    grown = longest > chosen.qkv.n
    if claim and claim.measures_lengths and grown:
        return _("The check uses {which} and lengths up to {most} tokens.", most=longest, which=heads)
    if chosen.qkv.n > LONGEST:
        return _(
            "The check uses {which} and the first {most} of {n} tokens.", most=LONGEST, n=chosen.qkv.n, which=heads
        )
    return paragraph(
        _n(
            "The check uses {which} and {n} token.",
            "The check uses {which} and {n} tokens.",
            n=chosen.qkv.n,
            which=heads,
        ),
        _("Claims about growth are checked at lengths up to {most} tokens.", most=longest)
        if grown and not claim
        else "",
    )
