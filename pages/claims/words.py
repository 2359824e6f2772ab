"""The texts of the Claims page: verdicts, findings, rules and the summary of all outcomes."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from app.ui.input_panel import ChosenInput
from app.words.i18n import _, _n, escape_markdown, paragraph
from attention_core.claims import LONGEST, Claim, Outcome, Quantity, Verdict, all_claims
from attention_core.variant import Paper

Colour = Literal["green", "orange", "gray", "blue"]

CHIPS: dict[Verdict, tuple[str, Colour]] = {
    Verdict.HOLDS: (":material/check_circle:", "green"),
    Verdict.PARTLY: (":material/contrast:", "orange"),
    Verdict.FAILS: (":material/radio_button_unchecked:", "gray"),
    Verdict.UNTESTABLE: (":material/help:", "blue"),
}
"""Icon and colour of each verdict. No verdict looks like an alarm, because "fails" is not an error."""


def badge(verdict: Verdict) -> str:
    """Return a verdict as icon and word, as Markdown."""
    icon, colour = CHIPS[verdict]
    return f":{colour}-badge[{icon} {_(verdict.value)}]"


def strip(outcomes: Sequence[Outcome]) -> str:
    """Return all verdicts in one line, each as an icon with the claim's number, as Markdown."""
    told = ((*CHIPS[outcome.verdict], outcome.claim.number) for outcome in outcomes)
    return " ".join(f":{colour}-badge[{icon} {number}]" for icon, colour, number in told)


def finding(outcome: Outcome) -> str:
    """Return the finding of a claim, as Markdown."""
    return escape_markdown(told(outcome))


def told(outcome: Outcome) -> str:
    """Return the finding of a claim, as plain text."""
    return paragraph(*(_(each, **outcome.formatted_numbers) for each in outcome.sentences))


def article(source: Paper) -> str:
    """Return the heading of an article's claims, as Markdown."""
    return f"[{escape_markdown(source.heading)}]({source.url}), {source.year}"


def drawn(claim: Claim) -> str:
    """Return the alternative text of a claim's figure."""
    return _("{y} against {x}", y=_(claim.figure.y_title), x=_(claim.figure.x_title))


def on_time() -> str:
    """Return why a claim that measures time is not checked automatically."""
    return _("It measures time, for which it has the machine to itself: it is checked once you ask.")


def on_reading() -> str:
    """Return why a claim for which a model reads the text is not checked automatically."""
    return _("SmolLM2 reads the text a dozen times for these claims, which takes a while: they wait until you ask.")


def headline(claim: Claim) -> str:
    """Return the number and the statement of a claim, as a Markdown heading."""
    return f"## {claim.number}. {escape_markdown(_(claim.statement))}"


def claimed_in(source: Paper) -> str:
    """Return the source of a claim, as Markdown."""
    return _(
        "Claimed in [{title}]({url}), {year}", title=escape_markdown(source.heading), url=source.url, year=source.year
    )


def rule(claim: Claim) -> str:
    """Return the rule by which a claim is judged, with its thresholds, as Markdown."""
    return escape_markdown(_(claim.rule, **claim.thresholds()))


def unit(quantity: Quantity) -> str:
    """Return the suffix of a quantity's value: its unit, after a no-break space except before a per cent sign."""
    return quantity.unit and ("" if quantity.unit == "%" else "\N{NO-BREAK SPACE}") + _(quantity.unit)


def numbers(outcome: Outcome) -> str:
    """Return the quantities that decided the verdict, as a Markdown table, because its text wraps."""
    found = outcome.claim.formatted_numbers(outcome.numbers)
    lines = [f"| {_('Measured')} | {_('Value')} |", "| :-- | --: |"]
    for each in outcome.claim.quantities:
        lines.append(
            f"| {escape_markdown(_(each.label))} | "
            f"**{escape_markdown(found[each.name])}**{escape_markdown(unit(each))} |"
        )
    return "\n".join(lines)


def theorem(claim: Claim) -> str:
    """Return why a theorem's verdict is always the same, as Markdown; empty if the verdict depends on the input."""
    return _("**A theorem.** {why}", why=escape_markdown(_(claim.theorem))) if claim.theorem else ""


def overall(outcomes: Sequence[Outcome]) -> str:
    """Return the number of claims per verdict, in a sentence or two."""
    count, untouched = Counter(outcome.verdict for outcome in outcomes), len(all_claims()) - len(outcomes)
    return paragraph(
        _(
            "On this input **{holds} of {all}** claims hold, **{partly}** partly and **{fails}** not.",
            holds=count[Verdict.HOLDS],
            all=len(outcomes),
            partly=count[Verdict.PARTLY],
            fails=count[Verdict.FAILS],
        ),
        _("Not testable on it: **{n}**.", n=count[Verdict.UNTESTABLE]) if count[Verdict.UNTESTABLE] else "",
        _("Not checked: {n}.", n=untouched) if untouched else "",
    )


def no_alarm(outcomes: Sequence[Outcome]) -> str:
    """Return what the verdict "does not hold here" means; empty if no claim has it."""
    if all(outcome.verdict is not Verdict.FAILS for outcome in outcomes):
        return ""
    return _(
        "“Does not hold here” is a finding, not an error: it speaks of this input, while the articles speak of their "
        "models, lengths and tasks. Try another input."
    )


def looked_at(chosen: ChosenInput, longest: int, claim: Claim | None = None) -> str:
    """Return the tokens and heads that a claim, or all claims, are checked on.

    Args:
        chosen: the input.
        longest: largest number of tokens measured.
        claim: the claim; None for all claims.
    """
    if claim and claim.uses_decoder:
        return _("Checked on what SmolLM2 makes of the text, whatever model, layer and heads are chosen.")
    if chosen.qkv.heads == 1:
        heads = _("one head")
    elif chosen.head is None:
        heads = _("all {heads} heads", heads=chosen.qkv.heads)
    else:
        heads = _("head {head} of {heads}", head=chosen.head, heads=chosen.qkv.heads)
    grown = longest > chosen.qkv.n
    if claim and claim.measures_lengths and grown:
        return _("Checked at lengths up to {most} tokens, {which}.", most=longest, which=heads)
    if chosen.qkv.n > LONGEST:
        return _("Checked on the first {most} of {n} tokens, {which}.", most=LONGEST, n=chosen.qkv.n, which=heads)
    return paragraph(
        _n("Checked on {n} token, {which}.", "Checked on {n} tokens, {which}.", n=chosen.qkv.n, which=heads),
        _("Growth is followed up to {most}.", most=longest) if grown and not claim else "",
    )
