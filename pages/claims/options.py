"""What the visitor asks of the Claims page."""

from app.state import url
from app.state.controls import Options, choice, kept, pills
from app.words.i18n import N_, _
from attention_core import claims
from attention_core.claims import ClaimTask, Verdict
from pages.claims.words import CHIPS

SHORT = {
    Verdict.HOLDS: N_("holds"),
    Verdict.PARTLY: N_("partly"),
    Verdict.FAILS: N_("does not hold"),
    Verdict.UNTESTABLE: N_("not testable"),
}
"""What the filter calls them: all of them stand in one line."""
VERDICTS = {"holds": Verdict.HOLDS, "partly": Verdict.PARTLY, "fails": Verdict.FAILS, "untestable": Verdict.UNTESTABLE}
"""The verdicts by their word in links."""


def _verdicts() -> dict[str, str]:
    return {"all": _("All")} | {word: f"{CHIPS[each][0]} {_(SHORT[each])}" for word, each in VERDICTS.items()}


class ClaimsOptions(Options):
    """What a link to this page carries beside the input."""

    # Whether claims that measure time are checked too, and those for which a model reads the text again and again; all
    # others are, as soon as the page is opened.
    check = kept(lambda: url.switch(False))
    reads = kept(lambda: url.switch(False))
    claim = kept(lambda: url.one_of("", [claim.key for claim in claims.all_claims()]))
    # Most claims are judged by the middle head or by a share of heads.
    heads = choice(
        {"all": N_("all heads"), "one": N_("the picked head")},
        N_("Heads"),
        link="claim_heads",
        layout={"label_visibility": "collapsed"},
    )
    verdict = pills(_verdicts, N_("Verdict"), layout={"label_visibility": "collapsed", "width": "content"})


def asked_for(task: ClaimTask) -> bool:
    """Whether a claim is to be checked: at once, or because the visitor asked."""
    return (ClaimsOptions.check.value or not task.timed) and (ClaimsOptions.reads.value or not task.slow)


def let_read() -> None:
    """Check the claims for which a model reads the text, now and when the input changes."""
    ClaimsOptions.reads.set(True)


def measure_time() -> None:
    """Check the claims that measure time as well, now and when the input changes."""
    ClaimsOptions.check.set(True)


def open_claim(key: str) -> None:
    """Open one claim's panel on the board; none for an empty key."""
    ClaimsOptions.claim.set(key)


def draw_heads(heads: int) -> None:
    """Which heads are looked at, where there are several."""
    if heads > 1:
        ClaimsOptions.heads.draw()
