"""The board of all claims by article: verdict, finding and a small figure on each card, drawn as results arrive."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.jobs import cached, dispatch, runs
from app.ui import export
from app.ui.input_panel import ChosenInput
from app.ui.small_figure import small_figure
from app.words.i18n import _, escape_markdown
from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Outcome
from attention_core.variant import Paper
from pages.claims import claim as panel
from pages.claims import longer_input, words
from pages.claims.options import VERDICTS, ClaimsOptions, asked_for, draw_heads, let_read, measure_time, open_claim

SEVERAL = 2
"""Minimum number of claims of an article that gets its own heading."""


def by_article(every: Iterable[Claim]) -> dict[Paper | None, list[Claim]]:
    """Group the claims by article, the longest groups first; None is last and groups the articles with one claim."""
    articles: dict[Paper, list[Claim]] = {}
    for claim in every:
        articles.setdefault(claim.source, []).append(claim)
    ranked = sorted(articles.items(), key=lambda entry: -len(entry[1]))
    groups: dict[Paper | None, list[Claim]] = {paper: own for paper, own in ranked if len(own) >= SEVERAL}
    if alone := [own[0] for _paper, own in ranked if len(own) < SEVERAL]:
        groups[None] = alone
    return groups


@dataclass(eq=False)
class Board:
    """The claims' cards on screen.

    Attributes:
        chosen: the input.
        opened: key of the claim whose panel replaces its card; empty for none.
        waiting: claims that are checked only if the visitor asks, by key.
        cards: placeholder of each claim's card, by key.
        outcomes: outcomes that have been drawn, by key.
    """

    chosen: ChosenInput
    opened: str
    waiting: Mapping[str, ClaimTask]
    cards: dict[str, DeltaGenerator] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def lay_out(self, shown: Sequence[Claim], tasks: Sequence[ClaimTask]) -> None:
        """Draw the cards with the known outcomes; the panel of the opened claim replaces its card."""
        groups, place = by_article(shown), None
        order = [claim for own in groups.values() for claim in own]
        for number, (source, own) in enumerate(groups.items()):
            st.markdown(f"## {words.article(source) if source else _('Articles with one claim each')}")
            with st.grid("auto", min_column_width=360, row_height="content", key=f"claims-board-{number}"):
                for claim in own:
                    if claim.key == self.opened:
                        place = st.container(border=True, key=f"claims-panel-{claim.key}")
                    else:
                        self._card(claim, headed=source is not None)
        if place is not None:
            [task] = (task for task in tasks if task.key == self.opened)
            with place:
                outcome = panel.show(task, order, self.chosen)
            self.tell([outcome] if outcome else [])

    def _card(self, claim: Claim, *, headed: bool) -> None:
        with st.container(border=True, height="stretch", gap="xsmall"):
            st.button(
                f"**{claim.number}. {escape_markdown(_(claim.statement))}**",
                key=f"claims.open.{claim.key}",
                type="tertiary",
                on_click=open_claim,
                args=(claim.key,),
            )
            if not headed:
                st.caption(words.article(claim.source))
            self.cards[claim.key] = st.empty()
        self._draw(claim)

    def _draw(self, claim: Claim) -> None:
        """Draw the outcome of a claim on its card, or the button that requests the check."""
        cached.page_lock().give_way()
        outcome, place = self.outcomes.get(claim.key), self.cards[claim.key]
        if outcome is None:
            if (task := self.waiting.get(claim.key)) is not None:
                with place.container(gap="xsmall"):
                    _offer(task)
            return
        if outcome.untestable_reason is None:
            place.markdown(card(outcome), unsafe_allow_html=True)
            return
        with place.container(gap="xsmall"):
            st.markdown(card(outcome))
            longer_input.show(outcome, self.chosen)

    @property
    def found(self) -> list[Outcome]:
        """Outcomes that have been drawn, in order of the claims' numbers."""
        return sorted(self.outcomes.values(), key=lambda outcome: outcome.claim.number)

    def refuse(self, task: ClaimTask, said: str) -> None:
        """Show on a claim's card why the claim could not be checked."""
        if task.key in self.cards:
            self.cards[task.key].caption(said)

    def tell(self, outcomes: Iterable[Outcome]) -> None:
        """Draw the outcomes that have not been drawn yet."""
        for outcome in outcomes:
            if outcome.key not in self.outcomes:
                self.outcomes[outcome.key] = outcome
                if outcome.key in self.cards:
                    self._draw(outcome.claim)


def _offer(task: ClaimTask) -> None:
    """Draw why a claim is not checked automatically, and the button that requests the check."""
    st.caption(words.on_time() if task.timed else words.on_reading())
    if task.timed:
        st.button(_("Measure it"), icon=":material/timer:", key=f"claims.time.{task.key}", on_click=measure_time)
    else:
        st.button(_("Check them"), icon=":material/menu_book:", key=f"claims.read.{task.key}", on_click=let_read)


def show(chosen: ChosenInput) -> None:
    """Draw the board and start all checks, except slow ones and time measurements, which would delay other tasks."""
    every = claims.tasks(chosen.source, head=chosen.head, load=cached.record)
    opened = ClaimsOptions.claim.value
    known = {task: found for task in every if (found := dispatch.known("claims", task)) is not None}
    waiting = {task.key: task for task in every if task not in known and not asked_for(task)}
    tasks = tuple(task for task in every if task.key not in waiting)
    top = st.container()
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="claims-controls"
    ):
        ClaimsOptions.verdict.draw()
        draw_heads(chosen.qkv.heads)
    only, place = VERDICTS.get(ClaimsOptions.verdict.value), st.container()
    board = Board(chosen, opened, waiting)
    board.tell(outcome for [outcome] in known.values())
    if only is None:
        with place:
            board.lay_out(claims.all_claims(), every)

    def draw(outcomes: Sequence[Outcome], key: str) -> None:
        board.tell(outcomes)
        st.markdown(words.overall(board.found))
        st.markdown(words.strip(board.found))

    with top:
        runs.run_immediately("claims", tasks, draw, key="claims.all", refuse=board.refuse)
    if only is not None:
        with place:
            board.lay_out([o.claim for o in board.found if only is o.verdict or o.key == opened], every)
    if board.found:
        _close(board.found, chosen, every[0].longest)


def card(outcome: Outcome) -> str:
    """Return the content of a claim's card, as Markdown with HTML: small figure, verdict and finding."""
    parts = [words.badge(outcome.verdict), words.finding(outcome)]
    if outcome.claim.theorem:
        parts[0] += f" :gray-badge[{_('a theorem')}]"
    if outcome.untestable_reason is None and (address := picture(outcome)):
        parts.insert(0, f'<img class="claim" alt="{html.escape(words.drawn(outcome.claim))}" src="{address}">')
    return "\n\n".join(parts)


def picture(outcome: Outcome) -> str | None:
    """Return a claim's small figure as a data URL; None if there is nothing to draw."""
    figure, bars = outcome.claim.figure, outcome.claim.figure.kind == "bars"
    rows = [row for row in outcome.rows if (y := getattr(row, figure.y)) is not None and y == y]
    places = list(dict.fromkeys(getattr(row, figure.x) for row in rows))
    series: dict[str, list[tuple[float, float]]] = {}
    # Not with pandas, which would take most of the page's time: each run draws about twenty cards.
    for row in rows:
        x = getattr(row, figure.x)
        at = places.index(x) if bars else x
        series.setdefault(getattr(row, figure.by), []).append((float(at), float(getattr(row, figure.y))))
    return small_figure(series, bars=bars, log_x=figure.log_x, log_y=figure.log_y)


def _close(outcomes: Sequence[Outcome], chosen: ChosenInput, longest: int) -> None:
    """Draw the end of the board: what a verdict means, and the download of all claims as a table."""
    if text := words.no_alarm(outcomes):
        st.caption(text)
    with st.container(horizontal=True, vertical_alignment="center"):
        export.download(_("All claims (CSV)"), lambda: table(outcomes), "claims.csv")
        st.caption(words.looked_at(chosen, longest), width="content")


def table(outcomes: Sequence[Outcome]) -> bytes:
    """Return every claim with its verdict, numbers and rule, as CSV."""
    header = [_("number"), _("claim"), _("verdict"), _("finding"), _("numbers"), _("rule"), _("source")]
    rows: list[list[object]] = []
    for outcome in outcomes:
        claim, found = outcome.claim, outcome.formatted_numbers
        numbers = "; ".join(
            f"{_(each.label)}: {found[each.name]}{words.unit(each)}"
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
                f"{claim.source.heading}, {claim.source.year}, {claim.source.url}",
            ]
        )
    return export.to_csv(header, rows)
