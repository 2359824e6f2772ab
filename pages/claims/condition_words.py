"""The texts about a claim's conditions: which are met, and how far a number is from its threshold."""

import math

from app.words.i18n import C_, N_, _, escape_markdown
from attention_core.claims import Claim, Outcome, Quantity, Verdict
from attention_core.claims.rule import Margin
from attention_core.formatting import format_readable
from pages.claims import words

NEED_PHRASES = {
    ">=": N_("at least {bound}"),
    "<=": N_("at most {bound}"),
    ">": N_("more than {bound}"),
    "<": N_("less than {bound}"),
}
"""Texts for the limit that a claim requires, by comparison operator."""
UNMET = N_("{label}: {value} (the claim needs {needs})")
"""Template of an unmet condition on a card."""
ICONS = {True: ":green[:material/check:]", False: ":red[:material/close:]"}
"""Icons of met and unmet conditions."""


def _required_heads(outcome: Outcome, margin: Margin) -> int:
    """Return the threshold of a share of heads as a number of heads."""
    rounded = math.ceil if margin.comparison in (">=", "<") else math.floor
    return rounded(round(outcome.heads * margin.threshold / 100, 6))


def conditions(outcome: Outcome) -> str:
    """Return the conditions of a judged claim, as lines of Markdown.

    The met conditions come first, without those on a number for which another condition is not met.
    """
    template = N_("{label}: {value} ({needs})")
    lines = [
        f"{ICONS[met]} " + escape_markdown(_condition_text(outcome, each, outcome.claim, template))
        for met, each in _tested(outcome)
    ]
    return "  \n".join([_("Measured (required):"), *lines])


def unmet_conditions(outcome: Outcome) -> str:
    """Return why a claim does not hold, or holds only partly, as lines of Markdown; empty for other verdicts.

    If the claim has several conditions, the first line is the number of met conditions. The other lines are the unmet
    ones. Of several unmet conditions on one number, only the one that the claim needs to hold is shown.
    """
    if outcome.verdict not in (Verdict.PARTLY, Verdict.FAILS):
        return ""
    median = _("median over heads") in words.finding(outcome, brief=True)

    def line(text: str) -> str:
        text = words.without_heads(text) if median else text
        return escape_markdown(text[:1].upper() + text[1:])

    tested, claim = _tested(outcome), words.with_whole_percents(outcome)
    met = sum(is_met for is_met, _margin in tested)
    unmet = {each.quantity: each for is_met, each in reversed(tested) if not is_met}
    icon, colour = words.VERDICT_ICONS[outcome.verdict]
    count, n = _("{count} of {n} conditions are met", n=met + len(unmet), count=met), met + len(unmet)
    if met and outcome.verdict is Verdict.FAILS:
        count = _("{conditions}; to hold partly, this claim needs more", conditions=count)
    texts = [_condition_text(outcome, each, claim, with_label=len(unmet) > 1) for each in reversed(unmet.values())]
    lines = [f"{ICONS[False]} {line(text)}" for text in texts if text]
    return "  \n".join([f":{colour}[{icon}] {count}", *lines] if n > 1 else lines)


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


def _condition_text(
    outcome: Outcome, margin: Margin, claim: Claim, template: str = UNMET, *, with_label: bool = False
) -> str:
    """Return the label and value of a quantity and what the rule needs; shares of heads become numbers of heads.

    If only the largest possible value meets the rule, the text names this value. Without ``with_label``, the text is
    only what the rule needs if it follows a finding that ends with this value. For a single head, the text says whether
    the label is true of it; it is empty if the finding of a failed claim says so on a card.
    """
    quantity, value, bound = _compared(claim, margin)
    named = words.NUMBERS.findall(outcome.claim.finding)
    in_short = template == UNMET and not with_label and named[-1:] == [quantity.name]
    if quantity.of_heads and outcome.heads == 1:
        if template == UNMET and outcome.verdict is Verdict.FAILS and quantity.name in named:
            return ""
        one = _("this head") if margin.value else _("not this head")
        return _("{label}: {value}", label=words.label(outcome, quantity), value=one)
    if quantity.of_heads and outcome.heads:
        count, required = words.head_count(outcome, margin.value), _required_heads(outcome, margin)
        value = _("{count} of {heads}", count=count, heads=outcome.heads)
        value = words.heads_text(count, outcome.heads) if in_short else value
        bound, needs_all = _(C_("number of heads", "{n}"), n=required), required == outcome.heads
    elif quantity.total:
        value = _("{count} of {heads}", count=value, heads=claim.formatted_numbers(outcome.numbers)[quantity.total])
        needs_all = margin.threshold == outcome.numbers[quantity.total]
    else:
        needs_all = quantity.unit == "%" and margin.threshold == 100
    needs = bound if needs_all and margin.comparison == ">=" else _(NEED_PHRASES[margin.comparison], bound=bound)
    if margin.factor is not None:
        needs = _("{needs}, {n} times what equal weights give", needs=needs, n=format_readable(margin.factor, None))
    template = N_("the claim needs {needs}") if in_short else template
    return _(template, label=words.label(outcome, quantity), value=value, needs=needs)


def _compared(claim: Claim, margin: Margin) -> tuple[Quantity, str, str]:
    """Return the quantity that a rule compares with a threshold, its value and the threshold, as texts."""
    [quantity] = (each for each in claim.quantities if each.name == margin.quantity)
    scale, percent = 100 if quantity.share else 1, quantity.share or quantity.unit == "%"
    value, bound = (
        quantity.plain(scale * each) if measured else format_readable(scale * each, None)
        for each, measured in ((margin.value, True), (margin.threshold, margin.measured))
    )
    return quantity, value + ("%" if percent else words.unit(quantity)), bound + ("%" if percent else "")
