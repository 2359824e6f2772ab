"""Sentences about all claims: how many hold, what verdicts mean, and the index of claims."""

from collections import Counter
from collections.abc import Mapping, Sequence

from app.words.i18n import N_, _, _n, clauses, enumeration, escape_markdown, paragraph
from attention_core import claims
from attention_core.claims import Claim, Outcome, Verdict, all_claims
from pages.claims import words
from pages.claims.words import VERDICT_ICONS, Colour, capitalised, is_fixed, verdict_name

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


FIRST_KEYS = ("near_diagonal", "cosine_closest", "mean_output")
"""The claims that the page opens with. They are easy to understand, their verdicts depend on the input, and on the text
of a first visit their verdicts differ."""


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

    The link's tooltip, which screen readers read as its name, also names the verdict. Claims with the same verdict on
    every input are marked.
    """
    icon, colour = VERDICT_ICONS[verdict] if verdict else UNCHECKED_ICON
    fixed = [_("on every input")] if is_fixed(claim, verdict) else []
    name = _(
        "{number}: {claim} ({verdict})",
        number=claim.number,
        claim=_(claim.short),
        verdict=clauses([verdict_name(verdict) if verdict else _("not run"), *fixed]),
    )
    text = escape_markdown(capitalised(claim)) + "".join(f" :gray[({each})]" for each in fixed)
    label = f":gray-badge[:{colour}[{icon}] {claim.number}] :small[{text}]"
    return f'[{label}](#?claim={claim.key} "{escape_markdown(name)}")'


def tiles(subject: str, verdicts: Mapping[str, Verdict], opened: str) -> str:
    """Return the name of a subject and the tiles of its claims, as Markdown; the opened claim's tile is bold.

    Args:
        subject: one of ``SUBJECTS``.
        verdicts: verdicts of the checked claims, by key.
        opened: key of the opened claim; empty for none.
    """
    shown = [(each.key, tile(each, verdicts.get(each.key))) for each in all_claims() if each.subject == subject]
    text = " ".join(f"**{text}**" if key == opened else text for key, text in shown)
    return f"**{_(SUBJECTS[subject])}**\n\n{text}"


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
        expected: number of claims that are checked; until all are, a progress bar takes the place of a sentence.
    """
    total, count = len(all_claims()), Counter(outcome.verdict for outcome in outcomes)
    tested = [outcome for outcome in outcomes if outcome.verdict is not Verdict.UNTESTABLE]
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
        _held_on_input(tested, finished=len(outcomes) >= expected) if outcomes else "",
        " ".join(f"**{text}**" if word == chosen else text for word, text in links.items()),
    )


def _held(verdicts: Sequence[Verdict]) -> str:
    """Return how many of the tested claims about trained models hold, in bold."""
    if not verdicts:
        return _("**No claim is tested yet.**")
    return _n(
        "**{n} of {tested} tested claims holds.**",
        "**{n} of {tested} tested claims hold.**",
        n=verdicts.count(Verdict.HOLDS),
        tested=len(verdicts),
    )


def _held_on_input(tested: Sequence[Outcome], *, finished: bool) -> str:
    """Return how many of the tested claims hold: first those that depend on the input, then, at the end, the others."""
    fixed, varying = (
        [each.verdict for each in tested if bool(each.claim.theorem) == is_fixed] for is_fixed in (True, False)
    )
    first = _n(
        "**{n} of {tested} tested claims that depend on your input holds.**",
        "**{n} of {tested} tested claims that depend on your input hold.**",
        n=varying.count(Verdict.HOLDS),
        tested=len(varying),
    )
    second = _n(
        "{n} of {tested} claims with the same verdict on every input holds.",
        "{n} of {tested} claims with the same verdict on every input hold.",
        n=fixed.count(Verdict.HOLDS),
        tested=len(fixed),
    )
    none = _("**No claim that depends on your input is tested.**")
    return paragraph(first if varying else none, second if fixed and finished else "")


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
        _held([outcome.verdict for outcome in tested]),
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
        _("Attention Lab chose the limits of all conditions."),
        _(
            "“Does not hold here” is a result on this input, not an error. The sources make their claims about other "
            "models, lengths and tasks."
        )
        if failed
        else "",
    )
