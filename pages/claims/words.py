"""The texts of a claim on its card and in its panel: name, verdict, finding, source and numbers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal
from unicodedata import east_asian_width

from app.ui.input_panel import ChosenInput
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.labels import paper_heading, paper_title
from attention_core.claims import LONGEST, Claim, ClaimTask, Outcome, Quantity, Verdict
from attention_core.formatting import number
from attention_core.variant import Paper

Colour = Literal["green", "orange", "red", "blue", "gray"]

VERDICT_ICONS: dict[Verdict, tuple[str, Colour]] = {
    Verdict.HOLDS: (":material/check_circle:", "green"),
    Verdict.PARTLY: (":material/contrast:", "orange"),
    Verdict.FAILS: (":material/cancel:", "red"),
    Verdict.UNTESTABLE: (":material/help:", "blue"),
}
"""Icon and colour of each verdict."""
OVER_HEADS = (
    N_("median over heads"),
    N_("medians over heads"),
    N_("mean over heads"),
    N_("in about three quarters of the heads"),
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
    """Return the verdict, and whether it is the same on every input, as Markdown."""
    fixed = is_fixed(outcome.claim, outcome.verdict)
    return badge(outcome.verdict) + (f" :gray-badge[{_('on every input')}]" if fixed else "")


def is_fixed(claim: Claim, verdict: Verdict | None) -> bool:
    """Return whether the verdict of a claim is the same on every input on which the claim can be tested."""
    return bool(claim.theorem) and verdict is not Verdict.UNTESTABLE


def without_heads(text: str) -> str:
    """Return a text without the phrases that say which heads a number summarizes."""
    phrases = "|".join(re.escape(_(phrase)) for phrase in OVER_HEADS)
    return re.sub(f"(, |，)({phrases})| ?[(（]({phrases})[)）]", "", text)


def label(outcome: Outcome, quantity: Quantity) -> str:
    """Return the description of a quantity; for a single head, without how heads are summarized."""
    return without_heads(_(quantity.label)) if outcome.heads == 1 else _(quantity.label)


def head_count(outcome: Outcome, per_cent: float) -> int:
    """Return a share of the measured heads as a number of heads."""
    return round(outcome.heads * per_cent / 100)


def heads_text(count: int, n: int) -> str:
    """Return a number of n heads in words; a single head is the selected one."""
    if not count:
        return _("no head")
    if count == n:
        return _("all {heads} heads", heads=n) if n > 1 else _("this head")
    return _n("{count} of {n} head", "{count} of {n} heads", n=n, count=count)


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

    The claim is returned unchanged if two numbers of its finding, or a number and its threshold, would look the same,
    or if the bars of its figure show their values with more digits.
    """
    known, numbers = outcome.claim, outcome.numbers
    if known.figure.kind == "bars":
        return known
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
            heads = heads_text(head_count(outcome, value), outcome.heads)
            text = _with_words(text, share.replace("{share}", place), heads)
        elif value == 100:
            text = _with_words(text, pairs.replace("{share}", place), _("all pairs of tokens"))
    return _(without_heads(text) if outcome.heads == 1 else text, **numbers)


def _with_words(text: str, place: str, words: str) -> str:
    """Replace a number in a text by words; before a Chinese word, the space is removed too."""
    return text.replace(f" {place}", words) if east_asian_width(words[0]) in "FW" else text.replace(place, words)


def article(source: Paper) -> str:
    """Return the authors and year of an article as a small link in Markdown, whose tooltip is the title."""
    name = f"{source.authors},\N{NO-BREAK SPACE}{source.year}"
    return f':small[[{name}]({source.url} "{escape_markdown(paper_title(source))}")]'


def figure_description(claim: Claim) -> str:
    """Return the alternative text of a claim's figure."""
    return _("Vertical axis: {y}. Horizontal axis: {x}.", y=_(claim.figure.y.title), x=_(claim.figure.x.title))


def on_request_reason(task: ClaimTask) -> str:
    """Return why a claim is checked only on request."""
    if task.timed:
        return _("Checked only on request, because the check measures computing times:")
    return _("Checked only on request, because SmolLM2 must process the text a dozen times:")


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


def theorem_note(claim: Claim) -> str:
    """Return why a theorem's verdict is always the same, as Markdown; empty if the verdict depends on the input."""
    return _("**The same on every input.** {why}", why=escape_markdown(_(claim.theorem))) if claim.theorem else ""


def scope(chosen: ChosenInput, longest: int, claim: Claim) -> str:
    """Return the tokens and heads that a claim is checked on, at most ``longest`` tokens."""
    if claim.is_recorded:
        return _(
            "This claim is judged on recorded training runs with three random seeds. The verdict does not depend on "
            "the input."
        )
    if claim.uses_decoder:
        return _(
            "This claim is checked with the language model SmolLM2. The verdict does not depend on the chosen model, "
            "layer and heads."
        )
    if claim.uses_image:
        return _("The check uses the whole image.")
    if chosen.qkv.heads == 1:
        heads = _("one head")
    elif chosen.head is None:
        heads = _("all {heads} heads", heads=chosen.qkv.heads)
    else:
        heads = _("head {head} of {heads}", head=chosen.head, heads=chosen.qkv.heads)
    if claim.measures_lengths and longest > chosen.qkv.n:
        return _("The check uses {which} and lengths up to {most} tokens.", most=longest, which=heads)
    if chosen.qkv.n > LONGEST:
        return _(
            "The check uses {which} and the first {most} of {n:,} tokens.", most=LONGEST, n=chosen.qkv.n, which=heads
        )
    return _n(
        "The check uses {which} and {n} token.", "The check uses {which} and {n} tokens.", n=chosen.qkv.n, which=heads
    )
