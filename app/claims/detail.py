"""One claim: what is claimed and where, what was found, the numbers, the rule and the figure."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

import attention_core as ac
from app import chart, compute, navigation, share, takeaway
from app.claims import heads, longer, words
from app.claims.drawing import picture
from app.input_panel import Chosen
from app.page import discover
from app.text import _, literal, sentence
from app.visit import Visit, read_variants
from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Outcome, Place, Verdict

SEEN = "claims.seen"
"""Tasks that were opened one by one: their outcomes stand on the board too."""


def show(claim: Claim, chosen: Chosen) -> None:
    """Check one claim and draw what was found."""
    _steps(claim)
    st.markdown(f"##### {claim.number}. {literal(_(claim.statement))}")
    place = st.empty()
    [task] = claims.tasks(chosen.source, head=chosen.head, load=compute.record, keys=[claim.key])
    outcome = _outcome(task)
    judged = outcome if outcome and not outcome.why else None
    with place.container(horizontal=True, vertical_alignment="center", gap="small"):
        if outcome:
            words.chip(outcome.verdict)
        source = claim.source
        st.caption(
            _("Claimed in [{title}]({url}), {year}", title=literal(source.title), url=source.url, year=source.year),
            width="content",
        )
    if outcome:
        st.markdown(words.finding(outcome))
        longer.show(outcome, chosen)
        if outcome.verdict is Verdict.FAILS:
            st.caption(words.no_alarm())
    if told := words.theorem(claim):
        st.caption(told)
    if judged:
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _figure(judged)
        with right:
            _numbers(judged)
    left, right = st.columns(2, gap="medium")
    left.markdown(f"**{_('Experiment')}**  \n{literal(_(claim.experiment))}")
    right.markdown(f"**{_('Rule')}**  \n{words.rule(claim)}")
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.caption(words.looked_at(chosen, task.longest, claim) if judged else "", width="content")
        heads.show(chosen)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if claim.place:
            _at_large(claim.place)
        if judged:
            chart.choose_format()
            takeaway.download(_("Rows (CSV)"), lambda: _csv(judged), f"{claim.key}.csv", "text/csv", "claims.rows")
        if judged and task.timed:
            st.button(
                _("Measure again"),
                icon=":material/timer:",
                key="claims.again",
                on_click=compute.forget,
                args=("claims", task),
                help=_("Times differ from run to run; these are of this machine."),
            )


def _steps(claim: Claim) -> None:
    """Back to the board, and to the claims before and after."""
    known = [each.key for each in claims.all_claims()]
    at = known.index(claim.key)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.button(
            _("All claims"),
            icon=":material/arrow_back:",
            key="claims.back",
            type="tertiary",
            on_click=open_claim,
            args=("",),
        )
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
            for name, icon, step in (
                (_("Previous"), ":material/chevron_left:", -1),
                (_("Next"), ":material/chevron_right:", 1),
            ):
                to = at + step
                st.button(
                    name,
                    icon=icon,
                    key=f"claims.step{step}",
                    disabled=not 0 <= to < len(known),
                    on_click=open_claim,
                    args=(known[to % len(known)],),
                    icon_position="left" if step < 0 else "right",
                )


def open_claim(key: str) -> None:
    """Show one claim; the board for an empty key."""
    st.session_state["claim"] = key


def _outcome(task: ClaimTask) -> Outcome | None:
    """What came of the claim; None, with a sentence on the page, where that cannot be told."""
    try:
        with st.spinner(_("Checking …"), show_time=True):
            rows = compute.rows("claims", task)
    except ac.LabError as error:
        st.info(literal(sentence(error)), icon=":material/info:")
        return None
    st.session_state.setdefault(SEEN, set()).add(task)
    [outcome] = claims.judged(rows)
    return outcome


def _figure(outcome: Outcome) -> None:
    figure = outcome.claim.figure
    drawn = picture(figure, outcome.rows)
    if drawn is None:
        st.info(_("Nothing was measured that could be drawn."), icon=":material/info:")
        return
    told = _("{y} against {x}", y=_(figure.y_title), x=_(figure.x_title))
    chart.show(drawn, key=f"claims.figure.{outcome.claim.key}", name=outcome.claim.key, alt=told)


def _numbers(outcome: Outcome) -> None:
    """The quantities as a table that wraps."""
    found = outcome.claim.found(outcome.numbers)
    lines = [f"| {_('Measured')} | |", "| :-- | --: |"]
    for each in outcome.claim.quantities:
        unit = "\N{NO-BREAK SPACE}" + literal(_(each.unit)) if each.unit else ""
        lines.append(f"| {literal(_(each.label))} | **{literal(found[each.name])}**{unit} |")
    st.markdown("\n".join(lines))


def _at_large(place: Place) -> None:
    """A link to the page where a claim can be seen at large on the same input."""
    title = _(discover()[place.page].title)
    navigation.link(place.page, _("See it at large: {page}", page=title), fields=address(place, st.session_state))


def address(place: Place, state: Mapping[Any, Any]) -> dict[str, list[str]]:
    """The address's query that opens a place: the input as it is, with what the claim is about."""
    changes = {"variants": read_variants(list(place.variants))} if place.variants else {}
    link = share.link_of(state, Visit.fields(), **changes)
    return link | {name: [word] for name, word in place.options.items()}


def _csv(outcome: Outcome) -> bytes:
    names = list(dict.fromkeys(name for row in outcome.rows for name in row))
    return takeaway.to_csv(names, [[row.get(name) for name in names] for row in outcome.rows])
