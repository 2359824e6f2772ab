"""Story of Reformer: hash, sort, cut into chunks, repeat in rounds, and measure the missed pairs."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.figures.categories import steps as shades
from app.figures.lines.curves import curves
from app.figures.lines.spread import spread
from app.figures.sorting import sorting
from app.jobs import cached, runs
from app.matrix_board import Category, Panel, matrix_board
from app.matrix_board.pair_kinds import Kinds, hide_future
from app.ui import chart
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.isolation import isolated
from app.words.labels import reference_name
from attention_core.analysis.masks.pattern import Hashed
from attention_core.experiments import hash_rounds, reversible
from attention_core.experiments.hash_rounds import HashRoundsRow
from attention_core.experiments.reversible import CHECKPOINTS, MOST, PLAIN, REVERSIBLE, WAYS, ReversibleRow
from attention_core.formatting import MIB, at_most, memory
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later
from pages.inside.tokens import painted

NAMED = 5
"""Tokens of a bucket that are named."""
WORST = 8
"""Number of missed pairs that are listed."""


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: hash, sort, cut, rounds, missed pairs, reversible memory, comparison with the reference."""
    number = InsideOptions.hash_round.restrict_to(range(len(seen.parts["buckets"])))
    return (
        _hash(seen, number),
        _sort(seen, number),
        _cut(seen, number),
        _union(seen),
        _missed(seen),
        _memory_over_depth(seen),
        beside_reference(
            seen,
            _(
                "Queries serve as keys too: {reference} is their softmax over all other tokens.",
                reference=reference_name(seen.attention),
            ),
        ),
    )


def _pick_round(seen: Seen) -> None:
    count = len(seen.parts["buckets"])
    if count > 1:
        InsideOptions.hash_round.draw(options=range(count), format_func=lambda i: str(i + 1))


def _hash(seen: Seen, number: int) -> Step:
    buckets = seen.parts["buckets"][number]
    n, sizes = len(buckets), np.bincount(buckets)
    fullest, filled = np.flatnonzero(buckets == sizes.argmax()), np.flatnonzero(sizes)

    def draw(key: str) -> None:
        _pick_round(seen)
        notes = [_("token {i}: bucket {bucket}", i=i, bucket=bucket) for i, bucket in enumerate(buckets)]
        st.html(painted(seen.qkv.tokens, _colours(seen, number), notes=notes))
        st.caption(_("The buckets that hold any token, with how many:"))
        legend = [_("bucket {bucket}: {count}", bucket=bucket, count=sizes[bucket]) for bucket in filled]
        st.html(painted(legend, range(len(filled)), notes=legend, places=()))

    words = filled_sentence(number + 1, n, len(filled), [seen.labels[i] for i in fullest])
    return Step(
        title=_("Hash"),
        formula=r"b(i) = \operatorname{argmax}\,[x_i R;\, -x_i R],\qquad x_i = \frac{q_i}{\lVert q_i \rVert} = k_i",
        shapes={"x": tuple(seen.qkv.q.shape[1:]), "b": tuple(seen.parts["buckets"].shape)},
        sentence=paragraph(
            words, likeness_sentence(*hash_rounds.bucket_similarity(seen.qkv.q[seen.head].numpy(), buckets))
        ),
        draw=draw,
    )


def filled_sentence(number: int, n: int, filled: int, fullest: Sequence[str]) -> str:
    """Return the sentence about how many buckets a round fills, and the tokens of the fullest bucket."""
    return _n(
        "Round {number} puts {tokens} tokens into **{n} bucket**; the fullest holds {most}: {names}.",
        "Round {number} puts {tokens} tokens into **{n} buckets**; the fullest holds {most}: {names}.",
        n=filled,
        number=number,
        tokens=n,
        most=len(fullest),
        names=some(fullest),
    )


def some(tokens: Sequence[str]) -> str:
    """Return the first few tokens in quotes, and how many more there are."""
    names = ", ".join(_("“{token}”", token=escape_markdown(token)) for token in tokens[:NAMED])
    more = len(tokens) - NAMED
    return _("{names} and {more} more", names=names, more=more) if more > 0 else names


def likeness_sentence(inside: float, outside: float) -> str:
    """Return the sentence that compares the mean cosine within a bucket and across buckets.

    Empty if one of the two kinds of pair does not exist.
    """
    if not (np.isfinite(inside) and np.isfinite(outside)):
        return ""
    return _(
        "Two tokens of one bucket have a mean cosine of {inside:.2f}, two of different ones {outside:.2f}.",
        inside=inside,
        outside=outside,
    )


def _colours(seen: Seen, number: int) -> list[int]:
    """Return the colour index of each token's bucket; non-empty buckets take the colours in order."""
    colours: list[int] = np.unique(seen.parts["buckets"][number], return_inverse=True)[1].tolist()
    return colours


def _borders(seen: Seen, number: int) -> list[int]:
    """Return the positions in the sorted order at which a chunk begins."""
    chunks = seen.parts["chunks"][number][seen.parts["order"][number]]
    return (np.flatnonzero(np.diff(chunks)) + 1).tolist()


def _sort(seen: Seen, number: int) -> Step:
    order, buckets = seen.parts["order"][number], seen.parts["buckets"][number].tolist()
    n, borders = len(order), _borders(seen, number)
    size = seen.setting("bucket_size")
    place = np.argsort(order)
    farthest = np.abs(place - np.arange(n)).argmax()
    alike = np.diff(seen.parts["buckets"][number][order]) == 0
    apart = np.where(alike, np.diff(order), 0)
    colours = _colours(seen, number)

    def draw(key: str) -> None:
        _pick_round(seen)
        figure = sorting(
            order,
            buckets,
            seen.labels,
            borders=borders,
            above=_("text"),
            below=_("sorted"),
            x_title=_("place, tokens"),
            kind=_("bucket"),
        )
        chart.show(
            figure,
            key=f"{key}.sorting",
            name="sorting",
            alt=_("Lines: every token from its place in the text to its place in the sorted order"),
        )
        marks = [int(order[i]) for i in borders]
        notes = [_("token {i}: bucket {bucket}", i=i, bucket=buckets[i]) for i in order]
        st.html(
            painted(
                [seen.labels[i] for i in order],
                [colours[i] for i in order],
                notes=notes,
                places=order.tolist(),
                borders=set(np.flatnonzero(np.isin(order, marks)).tolist()),
            )
        )
        st.caption(_("The text in the sorted order; a line stands between two chunks."))

    if not alike.any():
        words = _("No two of {n} tokens share a bucket, so the order brings none together.", n=n)
    else:
        at = apart.argmax()
        words = _(
            "Sorting brings **“{one}”** and **“{other}”** side by side, of one bucket and {distance} tokens apart in "
            "the text; “{token}” moves farthest, {moved} places.",
            one=seen.token(order[at]),
            other=seen.token(order[at + 1]),
            distance=apart[at],
            token=seen.token(farthest),
            moved=abs(place[farthest] - farthest),
        )
        words = paragraph(words, cut_sentence(len(borders) + 1, size, causal=seen.causal))
    return Step(
        title=_("Sort and cut"),
        formula=r"\pi = \operatorname{argsort}(b(i),\, i),\qquad c(i) = \left\lfloor \pi^{-1}(i) / s \right\rfloor",
        shapes={r"\pi": (n,), "c": (n,)},
        sentence=words,
        draw=draw,
    )


def cut_sentence(chunks: int, size: int, *, causal: bool) -> str:
    """Return the sentence about the number and size of the chunks."""
    if causal:
        return _("The order is cut into {n} chunks, each bucket by itself, every {size} places.", n=chunks, size=size)
    return _(
        "The order is cut into {n} chunks, every {size} places, no matter where a bucket ends.", n=chunks, size=size
    )


def _hashed(seen: Seen, number: int) -> Hashed:
    found = cached.hashed(seen.source, seen.attention, number, head=seen.head, causal=seen.causal)
    assert found is not None
    return found


@later(N_("Who may look"))
def _cut(seen: Seen, number: int) -> Step:
    found = _hashed(seen, number)
    counts = {name: part.sum() for name, part in found.parts.items()}
    n = len(found.order)
    size = seen.setting("bucket_size")
    possible = n * (n - 1) // (2 if seen.causal else 1)

    def draw(key: str) -> None:
        _pick_round(seen)
        kinds = Kinds([found.parts])
        codes = hide_future(kinds.codes(found.parts), causal=seen.causal)
        sorted_labels = [seen.labels[i] for i in found.order]
        matrix_board(
            [
                Panel(
                    "sorted",
                    _("In the sorted order"),
                    _("lines: where chunks begin"),
                    codes[np.ix_(found.order, found.order)],
                    row_labels=sorted_labels,
                    col_labels=sorted_labels,
                    borders=found.borders,
                ),
                Panel("text", _("In the order of the text"), "", codes),
            ],
            labels=seen.labels,
            key=f"{key}.chunks",
            categories=kinds.categories,
            none=_("may not look"),
            unit=_("Allowed by"),
            file_name="chunks",
        )

    return Step(
        formula=r"P_i = \{\, j \ne i : c(i) - c(j) \in \{0, 1\} \,\}"
        + (r" \cap \{ j < i \} \cap \{ b(j) = b(i) \}" if seen.causal else ""),
        shapes={"A": (n, n), r"\text{chunk}": (min(size, n),)},
        sentence=_(
            "Round {number} lets **{bucket:,}** pairs of one bucket look, and {chunk:,} that only share or neighbour a "
            "chunk; {missed:,} pairs of one bucket are cut apart. With all rounds {share:.1%} of {possible:,} look.",
            number=number + 1,
            bucket=counts["bucket"],
            chunk=counts["chunk"],
            missed=counts["missed"],
            share=(counts["bucket"] + counts["chunk"] + counts["round"]) / max(1, possible),
            possible=possible,
        ),
        draw=draw,
    )


def _union(seen: Seen) -> Step:
    """Build the step that shows how many rounds find each pair, and how coverage grows with the number of rounds."""
    rounds, n = len(seen.parts["buckets"]), len(seen.labels)
    start = hash_rounds.last_stretch(n, seen.attention, causal=seen.causal)
    found = hash_rounds.rounds_per_pair(seen.parts, causal=seen.causal).astype(np.float32)
    found[:start] = np.nan
    told = found[start:]
    pairs, once = int((told > 0).sum()), int((told == 1).sum())
    possible = (n - 1) * n // 2 - max(0, start * (start - 1)) // 2 if seen.causal else n * (n - 1)
    held = (seen.parts["all_pairs"] * looked(seen)).sum(-1).mean()
    reference = reference_name(seen.attention)
    kept = _("All pairs that look hold **{held:.0%}** of {reference}'s mass.", held=held, reference=reference)

    def draw(key: str) -> None:
        left, right = st.columns(2)
        with left:
            early = _("queries before {start} were hashed as a shorter text", start=start) if start else ""
            panel = Panel("found", _("Who finds each pair"), early, hide_future(found.copy(), causal=seen.causal))
            most = int(told.max(initial=1))
            matrix_board(
                [panel],
                labels=seen.labels,
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
            runs.run_immediately(
                "hash_rounds", tasks, lambda rows, at: _growth(rows, rounds, reference, at), key=f"{key}.rounds"
            )

    return Step(
        title=_("More rounds"),
        formula=r"P_i = \bigcup_{r} \{\, j \ne i : c_r(i) - c_r(j) \in \{0, 1\} \,\}"
        if not seen.causal
        else r"P_i = \bigcup_{r} \{\, j < i : c_r(i) - c_r(j) \in \{0, 1\},\; b_r(j) = b_r(i) \,\}",
        shapes={r"c_r": (rounds, n), "P": (n, n)},
        sentence=paragraph(union_sentence(rounds, pairs, once, possible), kept),
        draw=draw,
    )


def union_sentence(rounds: int, pairs: int, once: int, possible: int) -> str:
    """Return the sentence about the pairs that the rounds find together.

    Args:
        rounds: number of rounds.
        pairs: number of pairs found by at least one round.
        once: number of pairs found by exactly one round.
        possible: number of all pairs.
    """
    values = {"share": pairs / max(1, possible), "possible": possible}
    if rounds == 1:
        return _("One round lets **{share:.1%}** of {possible:,} pairs look; more rounds would find more.", **values)
    return _(
        "{rounds} rounds together let **{share:.1%}** of {possible:,} pairs look; {once:.0%} of these were found by "
        "one round only.",
        rounds=rounds,
        once=once / max(1, pairs),
        **values,
    )


def looked(seen: Seen) -> np.ndarray:
    """Return the mask of the pairs found in some round, including the diagonal, ``bool [n, n]``."""
    allowed: np.ndarray = (seen.weights > 0) | np.eye(len(seen.weights), dtype=bool)
    return allowed


def _growth(rows: Sequence[HashRoundsRow], rounds: int, reference: str, key: str) -> None:
    held = _("mass of {reference} they hold", reference=reference)
    figure = curves(
        [
            spread((row.rounds, 100 * row.pairs) for row in rows).curve(_("pairs that look"), 0),
            spread((row.rounds, 100 * row.mass) for row in rows).curve(held, 1),
        ],
        x_title=_("rounds"),
        y_title=_("%, median and quartiles of {count} seeds", count=hash_rounds.SEEDS),
        mark=rounds,
        height=400,
    )
    chart.show(
        figure, key=key, name="rounds", alt=_("Lines: pairs found and the mass they hold against the number of rounds")
    )


@later(N_("Missed"))
def _missed(seen: Seen) -> Step:
    """Build the step that lists the heaviest pairs that no round finds, and the mass they hold."""
    full, reference = seen.parts["all_pairs"], reference_name(seen.attention)
    unseen = np.where(looked(seen), 0.0, full)
    together = seen.parts["missed"].astype(bool)
    n, lost = len(full), unseen.sum(-1)
    worst = np.argsort(-unseen, axis=None, kind="stable")[:WORST]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(worst, unseen.shape), strict=True) if unseen[i, j] > 0]

    def draw(key: str) -> None:
        hidden = np.where(seen.weights > 0, np.nan, unseen).astype(np.float32)
        masked = _("masked: looked at, or the future") if seen.causal else _("masked: looked at")
        pictures.board(
            f"{key}.missed",
            pictures.pairs(seen, _("Missed: weight over all pairs"), hidden, masked),
            pictures.pairs(seen, _("All pairs: {reference}", reference=reference), full),
        )
        if pairs:
            st.dataframe(
                [
                    {
                        _("query"): f"{i} {isolated(seen.labels[i])}",
                        _("key"): f"{j} {isolated(seen.labels[j])}",
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
            lost=lost.mean(),
            query=seen.token(i),
            key=seen.token(j),
            weight=full[i, j],
            together=together.sum(),
            part=full[together].sum() / n,
        )
    return Step(
        formula=r"\text{missed} = \frac1n \sum_i \sum_{j \notin P_i} \operatorname{softmax}_{j \ne i}"
        r"\!\left(\frac{q_i^\top q_j}{\lVert q_j \rVert}\right)",
        shapes={"S": (n, n)},
        sentence=words,
        draw=draw,
    )


def _memory_over_depth(seen: Seen) -> Step:
    """Build the step that measures activation memory over the depth of a stack, for three ways to run it."""
    n, d = seen.qkv.n, seen.qkv.q.shape[-1]
    shown = min(n, MOST)

    def draw(key: str) -> None:
        tasks = reversible.tasks(seen.source, n, d, head=seen.head)
        runs.run_immediately("reversible", tasks, _memory, key=f"{key}.memory")

    return Step(
        title=_("Keep no activations"),
        formula=r"\begin{aligned} y_1 &= x_1 + F(x_2) & x_2 &= y_2 - G(y_1) \\ "
        r"y_2 &= x_2 + G(y_1) & x_1 &= y_1 - F(x_2) \end{aligned}",
        shapes={r"x_1, x_2, y_1, y_2": (shown, d)},
        sentence=_(
            "The paper's other half: every block adds to one of **two streams** what it makes of the other, so the "
            "last streams give back all earlier ones, and a backward pass needs no more. Here this head's queries, "
            "{n} tokens, go through blocks of softmax attention F and a feed-forward layer G with drawn weights.",
            n=shown,
        ),
        draw=draw,
    )


def _memory(rows: Sequence[ReversibleRow], key: str) -> None:
    if text := memory_sentence(rows):
        st.markdown(text)
    names = {
        PLAIN: _("plain residuals"),
        CHECKPOINTS: _("a checkpoint every √L blocks"),
        REVERSIBLE: _("reversible residuals"),
    }
    promised = reversible.predicted_bytes(rows)
    lines = []
    for place, way in enumerate(WAYS):
        counted = [(row.depth, row.peak_bytes / MIB) for row in rows if row.way == way]
        by_formula = [(depth, found / MIB) for depth, found in promised[way]]
        for points, dash in ((counted, "solid"), (by_formula, "dash")):
            if points:
                x, y = zip(*points, strict=True)
                lines.append(
                    Curve(
                        names[way],
                        x,
                        y,
                        colour=place,
                        dash=dash,
                        marks=dash == "solid",
                        group=way,
                        name_at_end=dash == "solid",
                    )
                )
    pictures.lines(
        lines,
        key=f"{key}.lines",
        x_title=_("blocks L"),
        y_title=_("MiB at the peak, forward + backward"),
        log_x=True,
        log_y=True,
        x_ticks=sorted({row.depth for row in rows}),
        alt=_("Lines: bytes that a forward and backward pass holds against the number of blocks, in three ways"),
    )
    st.caption(
        _(
            "Points: counted tensor by tensor, beyond the input, the weights and their gradients. Dashes, at most "
            "{off:.1%} off: what one block holds, and what the formula adds for more of them: all that a block keeps, "
            "L·a; two streams per checkpoint and one segment's blocks, √L·(2nd + a); nothing, but once the streams "
            "that are restored.",
            off=reversible.max_prediction_error(rows),
        )
    )


def memory_sentence(rows: Sequence[ReversibleRow]) -> str:
    """Return the sentence about the memory of the deepest stack in all three ways, and how well its input is recovered.

    Empty if no depth has been measured in all three ways.
    """
    held = {(row.way, row.depth): row.peak_bytes for row in rows}
    depths = sorted({depth for _way, depth in held if all((way, depth) in held for way in WAYS)} - {1})
    if not depths:
        return ""
    first, last = depths[0], depths[-1]
    error = next(row.error for row in rows if row.error is not None and row.depth == last)
    plain, checkpoints, own = (held[way, last] for way in (PLAIN, CHECKPOINTS, REVERSIBLE))
    words = _(
        "At **{blocks} blocks** plain residuals hold {plain}, a checkpoint every {every} blocks {checkpoints}, "
        "reversible ones **{own}**: {factor:.1f}× less than plain.",
        blocks=last,
        plain=memory(plain),
        every=reversible.segment(last),
        checkpoints=memory(checkpoints),
        own=memory(own),
        factor=plain / own,
    )
    if last > first:
        words = paragraph(
            words,
            _(
                "From {first} blocks to {blocks} theirs grows {growth:.2f}-fold, plain ones' {plain:.2f}-fold.",
                first=first,
                blocks=last,
                growth=own / held[REVERSIBLE, first],
                plain=plain / held[PLAIN, first],
            ),
        )
    back = _(
        "Run backwards in float32, the blocks give the input back to within {error} of its size.",
        error=at_most(error, 2),
    )
    return paragraph(words, back)
