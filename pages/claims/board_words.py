"""Sentences about all claims: how many hold, what verdicts mean, and the index of claims."""

from collections import Counter
from collections.abc import Mapping, Sequence

from app.words.i18n import N_, _, _n, clauses, enumeration, escape_markdown, paragraph
from attention_core import claims
from attention_core.claims import Claim, Outcome, Verdict, all_claims
from pages.claims import words
from pages.claims.words import VERDICT_ICONS, Colour, capitalised, is_proved, verdict_name

VERDICTS_BY_NAME = {
    "holds": Verdict.HOLDS,
    "partly": Verdict.PARTLY,
    "fails": Verdict.FAILS,
    "untestable": Verdict.UNTESTABLE,
}
"""Verdicts by their name in links."""


UNCHECKED_ICON: tuple[str, Colour] = (":material/remove:", "gray")
"""Icon and colour of claims that are not checked yet."""


SUBJECTS = {
    "softmax": N_("Softmax"),
    "sparse": N_("Sparse attention"),
    "low_rank": N_("Low-rank attention"),
    "linear": N_("Linear attention"),
    "delta": N_("Delta rule"),
    "model": N_("Language models"),
    "vision": N_("Images"),
}
"""Names of the subjects of claims about an input."""


FIRST_KEYS = ("two_layers", "near_diagonal", "cosine_closest")
"""The claims that the page opens with. They are easy to understand, none is a theorem, and on the text of a first visit
their verdicts differ."""


def origin(claim: Claim) -> str:
    """Return the article and the subject of a claim, as Markdown; claims about trained models have no subject."""
    if claim.subject not in SUBJECTS:
        return words.article(claim.source)
    subject = f"· {_(SUBJECTS[claim.subject])}".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{words.article(claim.source)} :small[{subject}]"


def link(claim: Claim, text: str) -> str:
    """Return a Markdown link that opens a claim; its tooltip is the claim's number and short name.

    Screen readers read the tooltip as the link's name, so it begins with the text if this is not the number.
    """
    name = f"{claim.number}: {escape_markdown(_(claim.short))}"
    return f'[{text}](#?claim={claim.key} "{name if text == str(claim.number) else f"{text} {name}"}")'


def tile(claim: Claim, verdict: Verdict | None) -> str:
    """Return a claim's verdict icon, number and short name as a link; ``verdict`` is None if the claim is not checked.

    The link's tooltip, which screen readers read as its name, also names the verdict. Theorems that hold are marked.
    """
    icon, colour = VERDICT_ICONS[verdict] if verdict else UNCHECKED_ICON
    theorem = [_("a theorem")] if is_proved(claim, verdict) else []
    name = _(
        "{number}: {claim} ({verdict})",
        number=claim.number,
        claim=_(claim.short),
        verdict=clauses([verdict_name(verdict) if verdict else _("not run"), *theorem]),
    )
    text = escape_markdown(capitalised(claim)) + "".join(f" :gray[({each})]" for each in theorem)
    label = f":gray-badge[:{colour}[{icon}] {claim.number}] :small[{text}]"
    return f'[{label}](#?claim={claim.key} "{escape_markdown(name)}")'


def tiles(subject: str, verdicts: Mapping[str, Verdict], opened: str) -> str:
    """Return the name of a subject and the tiles of its claims, as Markdown with HTML; the opened claim's tile is bold.

    The tiles are in a group, which is collapsed on a phone until it is opened. A wide screen always shows them.

    Args:
        subject: one of ``SUBJECTS``.
        verdicts: verdicts of the checked claims, by key.
        opened: key of the opened claim; empty for none.
    """
    shown = [(each.key, tile(each, verdicts.get(each.key))) for each in all_claims() if each.subject == subject]
    text = " ".join(f"**{text}**" if key == opened else text for key, text in shown)
    return f"<details><summary>{_(SUBJECTS[subject])}</summary>\n\n{text}\n\n</details>"


def unjudged(reasons: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> str:
    """Return the claims without a result below the reasons why they have none, as Markdown.

    Args:
        reasons: the reason by claim; empty while the check runs.
        outcomes: outcomes of the checked claims, by key.
    """
    tiles_by_reason: dict[str, list[str]] = {}
    for key, reason in reasons.items():
        verdict = outcomes[key].verdict if key in outcomes else None
        tiles_by_reason.setdefault(reason, []).append(tile(claims.claim(key), verdict))
    return "\n\n".join(f"{reason}\n\n{' '.join(found)}" for reason, found in tiles_by_reason.items())


def request_label(count: int) -> str:
    """Return the label of the button that checks the claims that run only on request."""
    return _n("Run {n} more check", "Run {n} more checks", n=count)


def summary(outcomes: Sequence[Outcome], chosen: str, expected: int = 0) -> str:
    """Return how many claims hold, and a link for each verdict that shows the claims with this verdict.

    Args:
        outcomes: the outcomes of the checked claims.
        chosen: name of the verdict whose claims are shown, or "all"; its link is bold.
        expected: number of claims that are checked; until all are, a progress bar takes the place of the theorems.
    """
    total, count = len(all_claims()), Counter(outcome.verdict for outcome in outcomes)
    theorems = sum(is_proved(outcome.claim, outcome.verdict) for outcome in outcomes)
    theorems = theorems if len(outcomes) >= expected else 0
    names = {
        "holds": _n("{n} holds", "{n} hold", n=count[Verdict.HOLDS]),
        "partly": _n("{n} partly holds", "{n} partly hold", n=count[Verdict.PARTLY]),
        "fails": _n("{n} does not hold", "{n} do not hold", n=count[Verdict.FAILS]),
        "untestable": _("{n} untestable", n=count[Verdict.UNTESTABLE]),
        "unchecked": _("{n} not run", n=total - len(outcomes)),
    }
    counts = {word: count[verdict] for word, verdict in VERDICTS_BY_NAME.items()} | {"unchecked": total - len(outcomes)}
    icons = {word: VERDICT_ICONS[verdict] for word, verdict in VERDICTS_BY_NAME.items()} | {"unchecked": UNCHECKED_ICON}
    links = {"all": f"[:gray-badge[{_('All {n}', n=total)}]](#?verdict=all)"} | {
        word: f"[:{colour}-badge[{icon} {names[word]}]](#?verdict={word})"
        for word, (icon, colour) in icons.items()
        if counts[word] or word == chosen
    }
    return paragraph(
        _held(count[Verdict.HOLDS], len(outcomes) - count[Verdict.UNTESTABLE], total, theorems) if outcomes else "",
        " ".join(f"**{text}**" if word == chosen else text for word, text in links.items()),
    )


def _held(count: int, tested: int, total: int, theorems: int = 0) -> str:
    """Return how many of the tested claims hold, in bold.

    Args:
        count: number of claims that hold.
        tested: number of claims with a verdict, without those that cannot be tested on the input.
        total: number of all claims.
        theorems: number of theorems among the claims that hold.
    """
    if not tested:
        return _("**No claim is tested yet.**")
    if tested == total:
        text = _n("{n} of {total} claims holds", "{n} of {total} claims hold", n=count, total=total)
    elif tested == 1:
        text = _("The only tested claim holds") if count else _("The only tested claim does not hold")
    else:
        text = _n(
            "{n} of the {tested} tested claims holds", "{n} of the {tested} tested claims hold", n=count, tested=tested
        )
    if not theorems:
        return _("**{held}.**", held=text)
    if count == 1:
        return _("**{held}**; it is a theorem.", held=text)
    return _n(
        "**{held}**; {n} of the {count} is a theorem.",
        "**{held}**; {n} of the {count} are theorems.",
        n=theorems,
        count=count,
        held=text,
    )


def verdict_note() -> str:
    """Return what the verdicts mean."""
    return _(
        "A claim holds if all its conditions are met on this input. Some claims partly hold if only some, or weaker, "
        "conditions are met."
    )


def trained_summary(tested: Sequence[Outcome], total: int) -> str:
    """Return how many claims about trained models are tested, with their verdicts, and how many are not.

    Args:
        tested: the outcomes of the claims whose training runs are recorded.
        total: number of claims about trained models.
    """
    count = Counter(outcome.verdict for outcome in tested)
    failed = sorted((each.claim for each in tested if each.verdict is Verdict.FAILS), key=lambda claim: claim.number)
    partly = count[Verdict.PARTLY]
    verdicts = paragraph(
        _held(count[Verdict.HOLDS], len(tested), total),
        _n("{n} partly holds.", "{n} partly hold.", n=partly) if partly else "",
        _n(
            "**{n} does not hold:** number {which}.",
            "**{n} do not hold:** numbers {which}.",
            n=len(failed),
            which=enumeration(link(each, str(each.number)) for each in failed),
        )
        if failed
        else "",
    )
    missing = _n(
        "{n} is not tested, because its training runs are not recorded.",
        "{n} are not tested, because their training runs are not recorded.",
        n=total - len(tested),
    )
    where = _("The claims are judged on recorded training runs of small models, not on your input.")
    task = _(
        "Recall means that a model reads pairs of a key and a value, and gives the value when a key appears again."
    )
    return paragraph(verdicts, missing if len(tested) < total else "", where, task)


def trained_note() -> str:
    """Return what models and sequences the claims about trained models are judged on."""
    return _(
        "The models have one or two layers of width 64, and were trained with three random seeds. Each accuracy is "
        "measured on 256 sequences, so a difference of a few percentage points can be chance. Larger models or "
        "longer training can give other results."
    )


def footnote(outcomes: Sequence[Outcome]) -> str:
    """Return what the verdicts do not say, and what "does not hold here" means if a claim has this verdict."""
    failed = any(outcome.verdict is Verdict.FAILS for outcome in outcomes)
    return paragraph(
        _("Attention Lab chose the limits of all conditions. A theorem has the same verdict on every testable input."),
        _(
            "“Does not hold here” is a result on this input, not an error. The sources make their claims about other "
            "models, lengths and tasks."
        )
        if failed
        else "",
    )
