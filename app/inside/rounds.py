"""What Reformer's rounds find together, and what none of them finds."""

import numpy as np
import streamlit as st

from app import chart, run
from app.figures.categories import steps as shades
from app.figures.curves import curves
from app.figures.spread import spread
from app.inside import pictures
from app.inside.pictures import Grid
from app.inside.step import Seen, Step
from app.matrix_board import Category, Panel, matrix_board
from app.matrix_board.pair_kinds import hide_future
from app.naming import reference_name
from app.text import _, literal
from attention_core.experiments import hash_rounds
from attention_core.experiments.task import Row

WORST = 8
"""Missed pairs named."""


def union(seen: Seen) -> Step:
    """How many rounds find each pair, and how both pairs and mass grow with the rounds."""
    rounds, n = len(seen.parts["buckets"]), len(seen.labels)
    start = hash_rounds.last_stretch(n, seen.attention, causal=seen.causal)
    found = hash_rounds.finders(seen.parts, causal=seen.causal).astype(np.float32)
    found[:start] = np.nan
    told = found[start:]
    pairs, once = int((told > 0).sum()), int((told == 1).sum())
    possible = (n - 1) * n // 2 - max(0, start * (start - 1)) // 2 if seen.causal else n * (n - 1)
    held = float((seen.parts["all_pairs"] * looked(seen)).sum(-1).mean())
    reference = reference_name(seen.attention)
    kept = " " + _("All pairs that look hold **{held:.0%}** of {reference}'s mass.", held=held, reference=reference)

    def draw(key: str) -> None:
        left, right = st.columns(2)
        with left:
            early = _("queries before {start} were hashed as a shorter text", start=start) if start else ""
            panel = Panel("found", _("Who finds each pair"), early, hide_future(found.copy(), causal=seen.causal))
            most = int(told.max(initial=1))
            matrix_board(
                [panel],
                row_labels=seen.labels,
                col_labels=seen.labels,
                key=f"{key}.found",
                categories=[
                    Category(_("one round") if i == 1 else _("{i} rounds", i=i), *colour)
                    for i, colour in enumerate(reversed(shades(most)), 1)
                ],
                none=_("none"),
                unit=_("Found by"),
                file_name="rounds",
            )
        with right:
            tasks = hash_rounds.tasks(seen.source, seen.attention.word, head=seen.head, causal=seen.causal)
            run.at_once(
                "hash_rounds", tasks, lambda rows, at: _growth(rows, rounds, reference, at), key=f"{key}.rounds"
            )

    return Step(
        title=_("More rounds"),
        formula=r"P_i = \bigcup_{r} \{\, j \ne i : c_r(i) - c_r(j) \in \{0, 1\} \,\}"
        if not seen.causal
        else r"P_i = \bigcup_{r} \{\, j < i : c_r(i) - c_r(j) \in \{0, 1\},\; b_r(j) = b_r(i) \,\}",
        shapes={r"c_r": (rounds, n), "P": (n, n)},
        sentence=_(
            "{rounds} rounds together let **{share:.1%}** of {possible:,} pairs look; {once:.0%} of these were found "
            "by one round only.",
            rounds=rounds,
            share=pairs / max(1, possible),
            possible=possible,
            once=once / max(1, pairs),
        )
        + kept
        if rounds > 1
        else _(
            "One round lets **{share:.1%}** of {possible:,} pairs look; more rounds would find more.",
            share=pairs / max(1, possible),
            possible=possible,
        )
        + kept,
        draw=draw,
    )


def looked(seen: Seen) -> np.ndarray:
    """The pairs that look in some round, and every token at itself, ``bool [n, n]``."""
    allowed: np.ndarray = (seen.weights > 0) | np.eye(len(seen.weights), dtype=bool)
    return allowed


def _growth(rows: list[Row], rounds: int, reference: str, key: str) -> None:
    def points(measure: str) -> list[tuple[float, float]]:
        return [(float(row["rounds"] or 0), 100 * float(row[measure] or 0)) for row in rows]

    figure = curves(
        [
            spread(points("pairs")).curve(_("pairs that look"), 0),
            spread(points("mass")).curve(_("mass of {reference} they hold", reference=reference), 1),
        ],
        x_title=_("rounds"),
        y_title=_("%, median and quartiles of {count} seeds", count=hash_rounds.SEEDS),
        mark=rounds,
        height=400,
    )
    chart.show(
        figure, key=key, name="rounds", alt=_("Lines: pairs found and the mass they hold against the number of rounds")
    )


def missed(seen: Seen) -> Step:
    """The heaviest looks that no round finds, and the mass outside the pattern."""
    full, reference = seen.parts["all_pairs"], reference_name(seen.attention)
    unseen = np.where(looked(seen), 0.0, full)
    together = seen.parts["missed"].astype(bool)
    n, lost = len(full), unseen.sum(-1)
    worst = np.argsort(-unseen, axis=None, kind="stable")[:WORST]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(worst, unseen.shape), strict=True) if unseen[i, j] > 0]

    def draw(key: str) -> None:
        hidden = np.where(seen.weights > 0, np.nan, unseen).astype(np.float32)
        pictures.grids(
            [
                Grid(
                    title=_("Missed: weight over all pairs"),
                    values=hide_future(hidden, causal=seen.causal),
                    rows=seen.labels,
                    columns=seen.labels,
                    caption=_("masked: looked at, or the future") if seen.causal else _("masked: looked at"),
                ),
                Grid(
                    title=_("All pairs: {reference}", reference=reference),
                    values=hide_future(full.copy(), causal=seen.causal),
                    rows=seen.labels,
                    columns=seen.labels,
                ),
            ],
            f"{key}.missed",
        )
        if pairs:
            st.dataframe(
                [
                    {
                        _("query"): f"{i} {seen.labels[i]}",
                        _("key"): f"{j} {seen.labels[j]}",
                        _("weight over all pairs"): 100 * float(full[i, j]),
                        _("why"): _("one bucket, cut apart") if together[i, j] else _("no round put them together"),
                    }
                    for i, j in pairs
                ],
                hide_index=True,
                column_config={_("weight over all pairs"): st.column_config.NumberColumn(format="%.1f %%")},
            )

    words = _("Every pair looks: nothing is missed.")
    if pairs:
        i, j = pairs[0]
        words = _(
            "**{lost:.0%}** of {reference}'s mass lies outside the pattern. The heaviest missed look is "
            "**“{query}” → “{key}”**, {weight:.0%} of its row. {together:,} pairs share a bucket in some round and yet "
            "do not look; they hold {part:.1%} of the mass.",
            reference=reference,
            lost=float(lost.mean()),
            query=literal(seen.labels[i]),
            key=literal(seen.labels[j]),
            weight=float(full[i, j]),
            together=int(together.sum()),
            part=float(full[together].sum() / n),
        )
    return Step(
        title=_("Missed"),
        formula=r"\text{missed} = \frac1n \sum_i \sum_{j \notin P_i} \operatorname{softmax}_{j \ne i}"
        r"\!\left(\frac{q_i^\top q_j}{\lVert q_j \rVert}\right)",
        shapes={"S": (n, n)},
        sentence=words,
        draw=draw,
    )
