"""What the visitor asks of the Claims page."""

from app import share
from app.controls import Options, choice, kept, pills
from app.text import N_, _
from attention_core import claims
from attention_core.claims import Verdict
from pages.claims.words import CHIPS

VERDICTS = {"holds": Verdict.HOLDS, "partly": Verdict.PARTLY, "fails": Verdict.FAILS, "untestable": Verdict.UNTESTABLE}
"""The verdicts by their word in links."""


def _verdicts() -> dict[str, str]:
    return {"all": _("All")} | {word: f"{CHIPS[each][0]} {_(each.value)}" for word, each in VERDICTS.items()}


class ClaimsOptions(Options):
    """What a link to this page carries beside the input."""

    check = kept(lambda: share.switch(False))
    claim = kept(lambda: share.one_of("", [claim.key for claim in claims.all_claims()]))
    # Most claims are judged by the middle head or by a share of heads.
    heads = choice(
        {"all": N_("all of the layer"), "one": N_("the one picked on the left")},
        N_("Heads"),
        link="claim_heads",
        help=N_("With the average picked on the left, these are all of the layer too."),
    )
    verdict = pills(_verdicts, N_("Verdict"), layout={"label_visibility": "collapsed", "width": "content"})


def check_all() -> None:
    """Check every claim, now and when the input changes."""
    ClaimsOptions.check.set(True)


def open_claim(key: str) -> None:
    """Show one claim; the board for an empty key."""
    ClaimsOptions.claim.set(key)


def draw_heads(heads: int) -> None:
    """Which heads are looked at, where there are several."""
    if heads > 1:
        ClaimsOptions.heads.draw()
