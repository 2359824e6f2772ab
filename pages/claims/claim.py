"""One claim: what is claimed and where, what was found, the numbers, the rule and the figure."""

from dataclasses import astuple, fields

import pandas as pd
import streamlit as st

import attention_core as ac
from app import chart, compute, dispatch, navigation, run, takeaway
from app.figures.measurements import measurements
from app.input_panel import Chosen
from app.page import discover
from app.text import _, literal, sentence
from app.visit import Visit, read_variants
from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Outcome, Place
from pages.claims import longer_input, words
from pages.claims.options import ClaimsOptions, draw_heads, open_claim

SEEN = "claims.seen"
"""Tasks that were opened one by one: their outcomes stand on the board too."""


def show(chosen: Chosen) -> None:
    """Check the claim that a link names or a button opened, and draw what was found."""
    claim = claims.claim(ClaimsOptions.claim.value)
    _steps(claim)
    st.markdown(words.headline(claim))
    place = st.empty()
    [task] = claims.tasks(chosen.source, head=chosen.head, load=compute.record, keys=[claim.key])
    outcome = _outcome(task)
    judged = outcome if outcome and not outcome.why else None
    with place.container(horizontal=True, vertical_alignment="center", gap="small"):
        if outcome:
            words.chip(outcome.verdict)
        st.caption(words.claimed_in(claim.source), width="content")
    if outcome:
        st.markdown(words.finding(outcome))
        longer_input.show(outcome, chosen)
    for told in (words.no_alarm([outcome] if outcome else []), words.theorem(claim)):
        if told:
            st.caption(told)
    if judged:
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _figure(judged)
        with right:
            st.markdown(words.numbers(judged))
    left, right = st.columns(2, gap="medium")
    left.markdown(f"**{_('Experiment')}**  \n{literal(_(claim.experiment))}")
    right.markdown(f"**{_('Rule')}**  \n{words.rule(claim)}")
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.caption(words.looked_at(chosen, task.longest, claim) if judged else "", width="content")
        draw_heads(chosen.qkv.heads)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if claim.place:
            _at_large(claim.place)
        if judged:
            chart.choose_format()
            takeaway.download(_("Rows (CSV)"), lambda: table(judged), f"{claim.key}.csv")
        if judged and task.timed:
            st.button(
                _("Measure again"),
                icon=":material/timer:",
                key="claims.again",
                on_click=dispatch.forget,
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


def _outcome(task: ClaimTask) -> Outcome | None:
    """What came of the claim; None, with a sentence on the page, where that cannot be told."""
    place = st.empty()
    try:
        with st.spinner(_("Checking …"), show_time=True):
            waiting = run.unchanged(lambda standing: place.caption(run.in_line(standing)))
            [outcome] = dispatch.rows("claims", task, waiting)
    except ac.LabError as error:
        st.info(literal(sentence(error)), icon=":material/info:")
        return None
    place.empty()
    st.session_state.setdefault(SEEN, set()).add(task)
    return outcome


def _figure(outcome: Outcome) -> None:
    figure, rows = outcome.claim.figure, pd.DataFrame(list(outcome.rows))
    bars, x_title, y_title = figure.kind == "bars", _(figure.x_title), _(figure.y_title)
    for words_of in (figure.by, figure.x) if bars else (figure.by,):
        rows[words_of] = rows[words_of].map(_)
    drawn = measurements(
        rows,
        figure.x,
        figure.y,
        figure.by,
        x_title=x_title,
        y_title=y_title,
        bars=bars,
        log_x=figure.log_x,
        log_y=figure.log_y,
    )
    if drawn is None:
        st.info(_("Nothing was measured that could be drawn."), icon=":material/info:")
        return
    told = _("{y} against {x}", y=y_title, x=x_title)
    chart.show(drawn, key=f"claims.figure.{outcome.key}", name=outcome.key, alt=told)


def _at_large(place: Place) -> None:
    """A link to the page where a claim can be seen at large on the same input, with what it is about."""
    navigation.link(
        place.page,
        _("See it at large: {page}", page=_(discover()[place.page].title)),
        fields={name: [word] for name, word in place.options.items()},
        variants=read_variants(list(place.variants)) if place.variants else Visit.variants.value,
    )


def table(outcome: Outcome) -> bytes:
    """What the experiment found, as CSV."""
    names = [field.name for field in fields(outcome.rows[0])]
    return takeaway.to_csv(["claim", *names], [(outcome.key, *astuple(row)) for row in outcome.rows])
