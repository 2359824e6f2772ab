"""The cards of the Claims page, one per claim, with its verdict, article, finding and a small figure.

Each card is drawn as soon as its result arrives.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.figures.small_figure import small_figure
from app.jobs import cached, dispatch, runs
from app.ui import export
from app.ui.input_panel import ChosenInput
from app.words.i18n import _, clauses
from app.words.labels import axis_title, paper_heading
from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Outcome
from pages.claims import board_words, colours, condition_words, options, words
from pages.claims import claim as panel
from pages.claims.board_words import VERDICTS_BY_NAME
from pages.claims.options import ClaimsOptions, is_requested, open_claim, request_all

CARD_HEIGHT = 310
"""Typical height in pixels of an outcome on a card, which is reserved until the claim is checked."""
BAR_HEIGHT = 72
"""Height in pixels of the bar of all verdicts on a wide screen."""


@dataclass(eq=False)
class Board:
    """The claims' cards on screen.

    Attributes:
        chosen: the input.
        opened: key of the claim whose panel replaces all cards; empty for none.
        on_request: claims that are checked only if the visitor asks, by key.
        cards: placeholder of each claim's card, by key.
        outcomes: outcomes that have been drawn, by key.
        unjudged: the claims without a result, which are listed instead of having cards.
        unjudged_list: placeholder of this list.
    """

    chosen: ChosenInput
    opened: str
    on_request: Mapping[str, ClaimTask]
    cards: dict[str, DeltaGenerator] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    unjudged: list[Claim] = field(default_factory=list)
    unjudged_list: DeltaGenerator | None = None

    def draw_cards(self, shown: Sequence[Claim], tasks: Sequence[ClaimTask], order: Sequence[Claim] = ()) -> None:
        """Draw the cards with the known outcomes, or only the panel of the opened claim.

        Args:
            shown: the claims. Those that cannot have a result are listed below the cards of the others.
            tasks: the tasks that check them.
            order: the claims that the buttons of the panel lead to, in order; empty for those shown.
        """
        if self.opened:
            [task] = (task for task in tasks if task.key == self.opened)
            with st.container(border=True, key=f"claims-panel-{self.opened}"):
                outcome = panel.show(task, order or shown, self.chosen)
            self.draw_outcomes([outcome] if outcome else [])
            return
        self.unjudged = [claim for claim in shown if self._is_unjudged(claim, tasks[0])]
        if with_cards := [claim for claim in shown if claim not in self.unjudged]:
            with st.grid("auto", min_column_width=360, row_height="content", key="claims-board-all"):
                for claim in with_cards:
                    self._add_placeholder(claim)
        if self.unjudged:
            st.markdown(f"## {_('Without a result')}")
            with st.container(key="claims-index-unjudged"):
                self.unjudged_list = st.empty()
            self._draw_list()

    def _is_unjudged(self, claim: Claim, task: ClaimTask) -> bool:
        """Return whether a claim has no verdict or, before it is checked, certainly will have none."""
        if (outcome := self.outcomes.get(claim.key)) is not None:
            return outcome.untestable_reason is not None
        return claim.key in self.on_request or claim.lacks_tokens(self.chosen.qkv.n, task.longest)

    def _add_placeholder(self, claim: Claim) -> None:
        with st.container(border=True, height="stretch", gap="xsmall", key=f"claims-card-{claim.key}"):
            st.button(
                words.title(claim),
                key=f"claims.open.{claim.key}",
                type="tertiary",
                on_click=open_claim,
                args=(claim.key,),
            )
            self.cards[claim.key] = st.empty()
        self._draw_card(claim)

    def _draw_card(self, claim: Claim) -> None:
        """Draw the outcome of a claim on its card, or reserve room for it."""
        cached.page_lock().yield_turn()
        outcome, place = self.outcomes.get(claim.key), self.cards[claim.key]
        if outcome is not None:
            place.markdown(card(outcome), unsafe_allow_html=True)
            return
        with place.container():
            st.markdown(board_words.origin(claim))
            st.html(f'<div class="chart-room" style="height: {CARD_HEIGHT}px"></div>')

    def _draw_list(self) -> None:
        reasons = {claim.key: self._reason(claim.key) for claim in self.unjudged}
        if self.unjudged_list is not None:
            self.unjudged_list.markdown(board_words.unjudged(reasons, self.outcomes))

    def _reason(self, key: str) -> str:
        """Return why a claim has no result; empty while it is checked."""
        if key in self.outcomes:
            return words.finding(self.outcomes[key])
        return words.on_request_reason(self.on_request[key]) if key in self.on_request else ""

    @property
    def drawn_outcomes(self) -> list[Outcome]:
        """Outcomes that have been drawn, in order of the claims' numbers."""
        return sorted(self.outcomes.values(), key=lambda outcome: outcome.claim.number)

    def draw_failure(self, task: ClaimTask, reason: str) -> None:
        """Show on a claim's card why the claim could not be checked."""
        if task.key in self.cards:
            self.cards[task.key].markdown(f"{board_words.origin(claims.claim(task.key))}\n\n{reason}")

    def draw_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Draw the outcomes that have not been drawn yet."""
        for outcome in outcomes:
            if outcome.key not in self.outcomes:
                self.outcomes[outcome.key] = outcome
                if outcome.key in self.cards:
                    self._draw_card(outcome.claim)
        if self.unjudged:
            self._draw_list()

    def draw_summary(self, key: str) -> None:
        """Draw all verdicts by subject, as links that open the claims.

        Args:
            key: key of the container of the links. Each call needs a different key.
        """
        verdicts = {outcome.key: outcome.verdict for outcome in self.drawn_outcomes}
        with st.container(horizontal=True, horizontal_alignment="distribute", gap="small", key=key):
            for subject in board_words.SUBJECTS:
                st.markdown(board_words.tiles(subject, verdicts, self.opened), width="content")


def show(chosen: ChosenInput) -> None:
    """Draw the board and start all checks, except slow ones and time measurements, which would delay other tasks."""
    checks = claims.tasks(chosen.source, head=chosen.head, load=cached.record)
    opened = options.opened_claim(claims.all_claims())
    known = {task: found for task in checks if (found := dispatch.cached_rows("claims", task)) is not None}
    on_request = {task.key: task for task in checks if task not in known and not is_requested(task)}
    tasks = sorted(
        (task for task in checks if task.key not in on_request),
        # Time measurements and checks that run SmolLM2 take longest. They run last, so that all other verdicts are on
        # screen before them.
        key=lambda task: (task.timed or task.runs_decoder, task.key not in board_words.FIRST_KEYS),
    )
    with st.container(horizontal=True, vertical_alignment="center", key="controls.claims"):
        summary = st.container(key="claims-summary")
        summary.empty()  # Streamlit reserves a container's place on the page only if it has an element.
        if on_request:
            st.button(
                board_words.request_label(len(on_request)),
                icon=":material/play_arrow:",
                key="claims.check",
                on_click=request_all,
                help=_(
                    "Some claims are checked only on request, because their checks measure computing times or "
                    "because SmolLM2 must read the text many times."
                ),
            )
    cards, index = st.container(), st.container()
    verdict_filter, every = ClaimsOptions.verdict.value, claims.all_claims()
    board = Board(chosen, opened, on_request)
    board.draw_outcomes(outcome for [outcome] in known.values())
    if verdict_filter == "all":
        with cards:
            board.draw_cards([claim for claim in every if claim.key in board_words.FIRST_KEYS], checks, every)
        with index:  # Drawn after the cards, which would move it down.
            st.markdown(f"## {_('All claims')}")
            index = st.container(key="claims-strip")
            index.empty()  # As above.

    def draw(outcomes: Sequence[Outcome], key: str) -> None:
        board.draw_outcomes(outcomes)
        if verdict_filter == "all":
            board.draw_summary(f"claims-index.{key}")

    with index:
        runs.run_immediately(
            "claims",
            tasks,
            draw,
            key="claims.all",
            refuse=board.draw_failure,
            describe=partial(board_words.summary, chosen=verdict_filter, expected=len(tasks)),
            container=summary,
            height=BAR_HEIGHT,
            counts=False,
        )
    if verdict_filter != "all":
        verdicts = {outcome.key: outcome.verdict for outcome in board.drawn_outcomes}
        verdict = VERDICTS_BY_NAME.get(verdict_filter)  # None for claims that are not checked yet.
        shown = [c for c in every if verdicts.get(c.key) is verdict or c.key == opened]
        with cards:
            board.draw_cards(shown, checks)
            if not shown:
                st.caption(_("No claim matches this filter."))
    if board.drawn_outcomes:
        st.caption(board_words.footnote(board.drawn_outcomes))
        export.download(_("All claims (CSV)"), lambda: table(board.drawn_outcomes), "claims.csv")


def show_trained(chosen: ChosenInput) -> None:
    """Draw the claims about trained models, which are judged on recorded training runs instead of the input."""
    all_claims = claims.trained_claims()
    tasks = claims.tasks(chosen.source, load=cached.record, keys=[claim.key for claim in all_claims])
    outcomes = [outcome for task in tasks for outcome in claims.run(task)]
    judged = [outcome for outcome in outcomes if outcome.untestable_reason is None]
    st.markdown(board_words.trained_summary(judged, len(all_claims)), help=board_words.trained_note())
    board = Board(chosen, options.opened_claim([outcome.claim for outcome in judged]), {})
    board.draw_outcomes(judged)
    board.draw_cards([outcome.claim for outcome in judged], tasks)


def card(outcome: Outcome) -> str:
    """Return the content of a claim's card, as Markdown with HTML: verdict, source, small figure and finding."""
    chart = picture(outcome)
    text = "  \n".join(filter(None, (words.finding(outcome, brief=True), condition_words.unmet_conditions(outcome))))
    figure = f'<span class="claim">{chart}</span>\n' if chart else ""
    details = board_words.link(outcome.claim, _("Details →"))
    return f"{words.badges(outcome)} {board_words.origin(outcome.claim)}\n\n{figure}{text}\n\n{details}"


def series(outcome: Outcome) -> dict[str, list[tuple[float, float]]]:
    """Return the points of a claim's small figure by series, in the order of the rows."""
    figure = outcome.claim.figure
    rows = [row for row in outcome.rows if (y := getattr(row, figure.y.attribute)) is not None and y == y]
    rows = [row for row in rows if not figure.main or getattr(row, figure.by) in figure.main]
    xs = list(dict.fromkeys(getattr(row, figure.x.attribute) for row in rows))
    points: dict[str, list[tuple[float, float]]] = {}
    # A loop, because grouping with pandas would take most of the page's time: each rerun draws about twenty cards.
    for row in rows:
        x = getattr(row, figure.x.attribute)
        x = xs.index(x) if figure.kind == "bars" else x
        points.setdefault(getattr(row, figure.by), []).append((float(x), float(getattr(row, figure.y.attribute))))
    return points


def picture(outcome: Outcome) -> str | None:
    """Return the small figure of a claim as HTML; None if there is nothing to draw."""
    figure, points_by_series = outcome.claim.figure, series(outcome)
    places: Sequence[str] = ()
    if figure.kind == "bars":
        places = list(dict.fromkeys(getattr(row, figure.x.attribute) for row in outcome.rows))
    elif outcome.heads == 1 and figure.kind == "points":  # Points at one position would hide each other.
        places = list(points_by_series)
        points_by_series = {
            name: [(i, y) for _x, y in points] for i, (name, points) in enumerate(points_by_series.items())
        }
    return small_figure(
        {_(name): points for name, points in points_by_series.items()},
        x_title=axis_title(_(figure.x.title), log=figure.x.log),
        y_title=axis_title(_(figure.main_title or figure.y.title), log=outcome.has_log_values),
        colours={_(name): place for name, place in colours.series_colours(points_by_series).items()},
        categories=[_(place) for place in places],
        subject=_(figure.subject) if figure.subject else "",
        joined=figure.kind != "points",
        log_x=figure.x.log,
        log_y=outcome.has_log_values,
        share=figure.percent,
        include=_lowest_accuracy(points_by_series) if outcome.claim.is_recorded else None,
        alt=words.figure_description(outcome.claim),
    )


def _lowest_accuracy(series: Mapping[str, Sequence[tuple[float, float]]]) -> float:
    """Return where the axis of accuracies in per cent begins: at 90 if all are higher, so that they can be compared."""
    return 90.0 if min(y for points in series.values() for _x, y in points) >= 90 else 0.0


def table(outcomes: Sequence[Outcome]) -> bytes:
    """Return every claim with its verdict, numbers and rule, as CSV."""
    header = [_("number"), _("claim"), _("verdict"), _("finding"), _("numbers"), _("rule"), _("source")]
    rows: list[list[object]] = []
    for outcome in outcomes:
        claim = outcome.claim
        numbers = clauses(
            _(
                "{name}: {size}",
                name=words.label(outcome, each),
                size=each.plain(outcome.numbers[each.name]) + words.unit(each),
            )
            for each in claim.quantities
            if each.name in outcome.numbers
        )
        rows.append(
            [
                claim.number,
                _(claim.statement),
                _(outcome.verdict.value),
                words.plain_finding(outcome),
                numbers,
                _(claim.rule, **claim.thresholds()),
                f"{paper_heading(claim.source)}, {claim.source.authors}, {claim.source.year}, {claim.source.url}",
            ]
        )
    return export.to_csv(header, rows)
