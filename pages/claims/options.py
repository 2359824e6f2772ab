"""The options of the Claims page, such as the open claim, the filter by verdict, and whether slow checks run."""

from collections.abc import Sequence

from app.state import link_fields
from app.state.controls import Options, choice, link_only_option
from app.words.i18n import C_, N_
from attention_core import claims
from attention_core.claims import Claim, ClaimTask
from pages.claims.board_words import VERDICTS_BY_NAME


class ClaimsOptions(Options):
    """The options that a link to this page carries in addition to the input."""

    # Claims that measure time (`check`) or for which a model reads the text many times (`reads`) are checked only on
    # request. All other claims are checked when the page opens.
    check = link_only_option(lambda: link_fields.switch(False))
    reads = link_only_option(lambda: link_fields.switch(False))
    claim = link_only_option(lambda: link_fields.one_of("", list(claims.discover())))
    view = choice(
        {"board": N_("Your input"), "trained": N_("Trained models")},
        N_("Claims about"),
        link="claims_view",
        layout={"label_visibility": "collapsed"},
    )
    # All heads by default, because most claims are judged by the median head or by a share of the heads.
    heads = choice(
        {"all": N_("All heads"), "one": N_("Selected head")},
        C_("choice of heads", "Heads"),
        link="claim_heads",
        layout={"label_visibility": "collapsed"},
    )
    verdict = link_only_option(
        lambda: link_fields.one_of("all", ["all", *VERDICTS_BY_NAME, "unchecked"]), N_("Verdict")
    )


def is_requested(task: ClaimTask) -> bool:
    """Return whether a claim is to be checked: automatically, or because the visitor requested it."""
    return (ClaimsOptions.check.value or not task.timed) and (ClaimsOptions.reads.value or not task.runs_decoder)


def request_all() -> None:
    """Check the claims that run only on request, now and whenever the input changes."""
    ClaimsOptions.check.set(True)
    ClaimsOptions.reads.set(True)


def open_claim(key: str) -> None:
    """Open the panel of a claim; an empty key closes it."""
    ClaimsOptions.claim.set(key)


def opened_claim(claim_list: Sequence[Claim]) -> str:
    """Return the key of the opened claim if it is one of these; otherwise an empty key."""
    return key if (key := ClaimsOptions.claim.value) in {claim.key for claim in claim_list} else ""
