"""All claims by the article they come from: verdict, finding and a small figure on each card, as the checks come in."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.jobs import cached, dispatch, runs
from app.ui import export
from app.ui.input_panel import Chosen
from app.ui.small_figure import small_figure
from app.words.i18n import _, literal
from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Outcome
from attention_core.variant import Paper
from pages.claims import claim as panel
from pages.claims import longer_input, words
from pages.claims.options import VERDICTS, ClaimsOptions, asked_for, draw_heads, let_read, measure_time, open_claim

SEVERAL = 2
"""Claims from which on an article has a heading of its own."""


def by_article(every: Iterable[Claim]) -> dict[Paper | None, list[Claim]]:
    """The claims by their article, those first that have most; at the end, for None, all that stand alone."""
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
        opened: the claim whose panel stands in its card's place; empty for none.
        waiting: what is checked only once a visitor asks, by key.
        cards: each claim's card, by key.
        outcomes: what is drawn, by key.
    """

    chosen: Chosen
    opened: str
    waiting: Mapping[str, ClaimTask]
    cards: dict[str, DeltaGenerator] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def lay_out(self, shown: Sequence[Claim], tasks: Sequence[ClaimTask]) -> None:
        """Draw the claims with what is known of them; the opened one's panel in its place."""
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
                f"**{claim.number}. {literal(_(claim.statement))}**",
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
        """What is known of a claim, on its card."""
        cached.drawing().give_way()
        outcome, place = self.outcomes.get(claim.key), self.cards[claim.key]
        if outcome is None:
            if (task := self.waiting.get(claim.key)) is not None:
                with place.container(gap="xsmall"):
                    _offer(task)
            return
        if outcome.why is None:
            place.markdown(card(outcome), unsafe_allow_html=True)
            return
        with place.container(gap="xsmall"):
            st.markdown(card(outcome))
            longer_input.show(outcome, self.chosen)

    @property
    def found(self) -> list[Outcome]:
        """What is drawn, by the claims' numbers."""
        return sorted(self.outcomes.values(), key=lambda outcome: outcome.claim.number)

    def refuse(self, task: ClaimTask, said: str) -> None:
        """Say why a claim could not be checked."""
        if task.key in self.cards:
            self.cards[task.key].caption(said)

    def tell(self, outcomes: Iterable[Outcome]) -> None:
        """Draw the outcomes that are new."""
        for outcome in outcomes:
            if outcome.key not in self.outcomes:
                self.outcomes[outcome.key] = outcome
                if outcome.key in self.cards:
                    self._draw(outcome.claim)


def _offer(task: ClaimTask) -> None:
    """Why a claim is not checked by itself, and the button that asks for it."""
    st.caption(words.on_time() if task.timed else words.on_reading())
    if task.timed:
        st.button(_("Measure it"), icon=":material/timer:", key=f"claims.time.{task.key}", on_click=measure_time)
    else:
        st.button(_("Check them"), icon=":material/menu_book:", key=f"claims.read.{task.key}", on_click=let_read)


def show(chosen: Chosen) -> None:
    """Draw the board; the checks run by themselves, but for those of time, which keep others waiting, and slow ones."""
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
        runs.at_once("claims", tasks, draw, key="claims.all", refuse=board.refuse)
    if only is not None:
        with place:
            board.lay_out([o.claim for o in board.found if only is o.verdict or o.key == opened], every)
    if board.found:
        _close(board.found, chosen, every[0].longest)


def card(outcome: Outcome) -> str:
    """What a claim's card says, as Markdown with HTML: its figure in small, the verdict, and what was found."""
    parts = [words.badge(outcome.verdict), words.finding(outcome)]
    if outcome.claim.theorem:
        parts[0] += f" :gray-badge[{_('a theorem')}]"
    if outcome.why is None and (address := picture(outcome)):
        parts.insert(0, f'<img class="claim" alt="{html.escape(words.drawn(outcome.claim))}" src="{address}">')
    return "\n\n".join(parts)


def picture(outcome: Outcome) -> str | None:
    """A claim's figure in small, as an address that holds it; None where nothing could be drawn."""
    figure, bars = outcome.claim.figure, outcome.claim.figure.kind == "bars"
    rows = [row for row in outcome.rows if (y := getattr(row, figure.y)) is not None and y == y]
    places = list(dict.fromkeys(getattr(row, figure.x) for row in rows))
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:  # not by pandas, which takes most of what the page does: some twenty cards are drawn at each run
        x = getattr(row, figure.x)
        at = places.index(x) if bars else x
        series.setdefault(getattr(row, figure.by), []).append((float(at), float(getattr(row, figure.y))))
    return small_figure(series, bars=bars, log_x=figure.log_x, log_y=figure.log_y)


def _close(outcomes: Sequence[Outcome], chosen: Chosen, longest: int) -> None:
    """What stands beneath the board: what a verdict is, and all of them as a table."""
    if told := words.no_alarm(outcomes):
        st.caption(told)
    with st.container(horizontal=True, vertical_alignment="center"):
        export.download(_("All claims (CSV)"), lambda: table(outcomes), "claims.csv")
        st.caption(words.looked_at(chosen, longest), width="content")


def table(outcomes: Sequence[Outcome]) -> bytes:
    """Every claim with its verdict, its numbers and its rule, as CSV."""
    header = [_("number"), _("claim"), _("verdict"), _("finding"), _("numbers"), _("rule"), _("source")]
    rows: list[list[object]] = []
    for outcome in outcomes:
        claim, found = outcome.claim, outcome.found
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
