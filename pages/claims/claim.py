"""The details of one claim on the Claims page: source, finding, numbers, the rule for its verdict, and figure."""

from collections.abc import Sequence
from dataclasses import astuple, fields

import pandas as pd
import streamlit as st

import attention_core as ac
from app.figures.lines.measurements import measurements
from app.jobs import dispatch, runs
from app.page import discover
from app.state.session import SharedOptions, read_variants
from app.ui import chart, export, navigation
from app.ui.input_panel import ChosenInput
from app.words.i18n import C_, _, escape_markdown, sentence
from app.words.labels import axis_title
from attention_core.claims import Claim, ClaimTask, Outcome, Place
from pages.claims import colours, condition_words, longer_input, words
from pages.claims.options import open_claim


def show(task: ClaimTask, order: Sequence[Claim], chosen: ChosenInput) -> Outcome | None:
    """Check one claim and draw its outcome.

    Args:
        task: the claim on this input.
        order: all claims, in the order of the board.
        chosen: the input.

    Returns:
        The outcome; None if the check failed.
    """
    claim = next(each for each in order if each.key == task.key)
    _show_navigation(claim, order)
    st.markdown(words.headline(claim))
    placeholder = st.empty()
    outcome = _check(task)
    judged = outcome if outcome and not outcome.untestable_reason else None
    with placeholder.container(horizontal=True, vertical_alignment="center", gap="small"):
        if outcome:
            st.markdown(words.badges(outcome), width="content")
        st.caption(words.source_text(claim.source), width="content")
    if outcome:
        st.markdown(words.finding(outcome))
        longer_input.show(outcome, chosen)
    if text := words.theorem_note(claim):
        st.caption(text)
    if judged:
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _show_figure(judged)
        with right:
            st.markdown(condition_words.conditions(judged))
            st.caption(words.scope(chosen, task.longest, claim))
    with st.expander(_("Experiment and rule")):
        left, right = st.columns(2, gap="medium")
        left.markdown(f"**{_('Experiment')}**  \n{escape_markdown(_(claim.experiment))}")
        right.markdown(f"**{_('Rule')}**  \n{words.rule_text(claim)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        if claim.place:
            _show_page_link(claim.place.with_numbers(outcome.numbers if outcome else {}))
        if judged:
            export.download(_("Rows (CSV)"), lambda: table(judged), f"{claim.key}.csv")
        if judged and task.timed:
            st.button(
                _("Measure again"),
                icon=":material/timer:",
                key="claims.again",
                on_click=dispatch.drop_rows,
                args=("claims", task),
                help=_("Times vary between runs. These times were measured on this machine."),
            )
    return outcome


def _show_navigation(claim: Claim, order: Sequence[Claim]) -> None:
    """Draw the buttons that close the panel or open the previous or the next claim."""
    index = order.index(claim)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        for name, icon, target in (
            (_("Previous"), ":material/chevron_left:", index - 1),
            (_("Close"), ":material/close:", None),
            (_(C_("claim", "Next")), ":material/chevron_right:", index + 1),
        ):
            st.button(
                name,
                icon=icon,
                key="claims.back" if target is None else f"claims.step{target - index}",
                type="tertiary",
                disabled=target is not None and not 0 <= target < len(order),
                on_click=open_claim,
                args=("" if target is None else order[target % len(order)].key,),
                icon_position="right" if target == index + 1 else "left",
            )


def _check(task: ClaimTask) -> Outcome | None:
    """Return the outcome of the claim; if the check fails, show why and return None."""
    placeholder = st.empty()
    try:
        with st.spinner(_("Checking …"), show_time=True):
            on_status = runs.on_status_change(lambda standing: placeholder.caption(runs.queue_text(standing)))
            [outcome] = dispatch.rows("claims", task, on_status)
    except ac.LabError as error:
        st.info(escape_markdown(sentence(error)), icon=":material/info:")
        return None
    placeholder.empty()
    return outcome


def _show_figure(outcome: Outcome) -> None:
    figure, rows = outcome.claim.figure, pd.DataFrame(list(outcome.rows))
    bars = figure.kind == "bars"
    series_places = {_(name): place for name, place in colours.series_colours(rows[figure.by].unique()).items()}
    if bars:  # In the order of the bars on the card.
        medians = rows.groupby([figure.x.attribute, figure.by], sort=False)[figure.y.attribute].median()
        order = medians.groupby(level=0, sort=False).first()
        rows = rows.sort_values(figure.x.attribute, key=lambda names: names.map(order), kind="stable")
    for column in (figure.by, figure.x.attribute) if bars else (figure.by,):
        rows[column] = rows[column].map(_)
    figure_ = measurements(
        rows,
        figure.x.attribute,
        figure.y.attribute,
        figure.by,
        colours=series_places,
        x_title=axis_title(_(figure.x.title), log=figure.x.log),
        y_title=axis_title(_(figure.y.title), log=outcome.has_log_values),
        bars=bars,
        joined=figure.kind != "points",
        log_x=figure.x.log,
        log_y=outcome.has_log_values,
        percent=figure.percent,
    )
    if figure_ is None:
        st.info(_("There are no results to draw."), icon=":material/info:")
        return
    chart.show(
        figure_, key=f"claims.figure.{outcome.key}", name=outcome.key, alt=words.figure_description(outcome.claim)
    )
    if bars and outcome.heads > 1:
        st.caption(_("Bars: median over heads. Thin lines: middle half of the heads."))


def _show_page_link(place: Place) -> None:
    """Draw a link to the page and the variants that show the claim in detail on the same input."""
    navigation.link(
        place.page,
        _("Open in {page}", page=_(discover()[place.page].title)),
        fields={name: [word] for name, word in place.options.items()},
        variants=read_variants(list(place.variants)) if place.variants else SharedOptions.variants.value,
    )


def table(outcome: Outcome) -> bytes:
    """Return the rows of the experiment, as CSV."""
    names = [field.name for field in fields(outcome.rows[0])]
    return export.to_csv(["claim", *names], [(outcome.key, *astuple(row)) for row in outcome.rows])
