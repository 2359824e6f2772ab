"""All claims at a glance: number, statement, verdict and what was found, as the checks come in."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, run, takeaway
from app.input_panel import Chosen
from app.text import _, literal
from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Outcome, Verdict
from pages.claims import longer_input, words
from pages.claims.claim import SEEN
from pages.claims.options import VERDICTS, ClaimsOptions, check_all, draw_heads, open_claim


@dataclass(eq=False)
class Board:
    """The claims' rows on screen, each drawn when what it shows is known.

    Attributes:
        place: where they stand.
        only: the verdict that is shown, None for all claims.
        chosen: the input.
        slots: where a claim's chip and finding go, by key.
        told: the claims whose outcome is drawn.
    """

    place: DeltaGenerator
    only: Verdict | None
    chosen: Chosen
    slots: dict[str, tuple[DeltaGenerator, DeltaGenerator]] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def add(self, claim: Claim) -> None:
        """Draw a claim that has no outcome yet."""
        with self.place.container(border=True, height="stretch", gap="xsmall"):
            with st.container(
                horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False, gap="small"
            ):
                with st.container(
                    horizontal=True, vertical_alignment="center", width="content", wrap=False, gap="small"
                ):
                    st.markdown(f"**{claim.number}**", width="content")
                    chip = st.empty()
                st.button(
                    _("Open"),
                    icon=":material/arrow_forward:",
                    icon_position="right",
                    key=f"claims.open.{claim.key}",
                    type="tertiary",
                    on_click=open_claim,
                    args=(claim.key,),
                )
            st.markdown(f"**{literal(_(claim.statement))}**")
            finding = st.empty()
            if told := words.theorem(claim):
                st.caption(told)
        self.slots[claim.key] = chip, finding

    def refuse(self, task: ClaimTask, said: str) -> None:
        """Say why a claim could not be checked."""
        if task.key in self.slots:
            self.slots[task.key][1].caption(said)

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Draw the outcomes that are new."""
        for outcome in outcomes:
            key = outcome.key
            if key in self.told or self.only not in (None, outcome.verdict):
                continue
            if key not in self.slots:
                self.add(outcome.claim)
            chip, finding = self.slots[key]
            with chip.container():
                words.chip(outcome.verdict)
            with finding.container(gap="xsmall"):
                st.markdown(words.finding(outcome))
                longer_input.show(outcome, self.chosen)
            self.told.add(key)


def show(chosen: Chosen) -> None:
    """Draw the board; the checks run once they have been asked for."""
    tasks, checked = claims.tasks(chosen.source, head=chosen.head, load=compute.record), ClaimsOptions.check.value
    if not checked:
        tasks = tuple(task for task in tasks if task in st.session_state.get(SEEN, ()))
    top, known = st.container(), len(claims.all_claims())
    if not checked:
        with st.container(horizontal=True, vertical_alignment="center"):
            icon = ":material/fact_check:"
            st.button(_("Check all claims"), icon=icon, key="claims.all", type="primary", on_click=check_all)
            st.caption(_("It takes up to half a minute and can be stopped."), width="content")
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        ClaimsOptions.verdict.draw(disabled=not tasks)
        draw_heads(chosen.qkv.heads)
    only = VERDICTS.get(ClaimsOptions.verdict.value) if tasks else None
    board = Board(st.grid("auto", min_column_width=360, row_height="content", key="claims-board"), only, chosen)
    if only is None:
        for claim in claims.all_claims():
            board.add(claim)

    def draw(outcomes: Sequence[Outcome], key: str) -> None:
        st.markdown(words.overall(outcomes))
        st.markdown(words.strip(outcomes))
        board.tell(outcomes)

    with top:
        if tasks:
            outcomes = run.at_once("claims", tasks, draw, key="claims.all", refuse=board.refuse)
        else:
            outcomes = []
            st.markdown(
                _("{n} statements from articles about attention, none of them checked on this input yet.", n=known)
            )
    if outcomes:
        _close(outcomes, chosen, tasks[0].longest)


def _close(outcomes: Sequence[Outcome], chosen: Chosen, longest: int) -> None:
    """What stands beneath the board: what a verdict is, and all of them as a table."""
    if told := words.no_alarm(outcomes):
        st.caption(told)
    with st.container(horizontal=True, vertical_alignment="center"):
        takeaway.download(_("All claims (CSV)"), lambda: table(outcomes), "claims.csv")
        st.caption(words.looked_at(chosen, longest), width="content")


def table(outcomes: Sequence[Outcome]) -> bytes:
    """Every claim with its verdict, its numbers and its rule, as CSV."""
    header = [_("number"), _("claim"), _("verdict"), _("finding"), _("numbers"), _("rule"), _("source")]
    rows: list[list[object]] = []
    for outcome in outcomes:
        claim, found = outcome.claim, outcome.found
        numbers = "; ".join(
            f"{_(each.label)}: {found[each.name]}" + (f" {_(each.unit)}" if each.unit else "")
            for each in claim.quantities
            if each.name in outcome.numbers
        )
        rows.append(
            [
                claim.number,
                _(claim.statement),
                _(outcome.verdict.value),
                words.told(outcome),
                numbers,
                _(claim.rule, **claim.thresholds()),
                f"{claim.source.title}, {claim.source.year}, {claim.source.url}",
            ]
        )
    return takeaway.to_csv(header, rows)
