"""Reformer: hash, sort, cut into chunks, do it again, and see what was missed."""

import numpy as np
import streamlit as st

from app import chart, compute, share
from app.figures.sorting import sorting
from app.inside import reversing, rounds
from app.inside.closing import beside_softmax
from app.inside.step import Seen, Step
from app.inside.tokens import painted
from app.matrix_board import Panel, matrix_board
from app.matrix_board.pair_kinds import Kinds, hide_future
from app.naming import reference_name
from app.text import _, literal
from attention_core.experiments import hash_rounds
from attention_core.looks.pattern import Hashed


def steps(seen: Seen) -> tuple[Step, ...]:
    """Hash, sort, cut, repeat, miss, keep nothing, compare."""
    share.fit(hash_round=range(len(seen.parts["buckets"])))
    number = st.session_state["hash_round"]
    return (
        _hash(seen, number),
        _sort(seen, number),
        _cut(seen, number),
        rounds.union(seen),
        rounds.missed(seen),
        reversing.memory_over_depth(seen),
        beside_softmax(
            seen,
            _(
                "Queries serve as keys too: {reference} is their softmax over all other tokens.",
                reference=reference_name(seen.attention),
            ),
        ),
    )


def _pick_round(seen: Seen, key: str) -> None:
    count = len(seen.parts["buckets"])
    if count > 1:
        st.selectbox(
            _("Round"),
            range(count),
            format_func=lambda i: str(i + 1),
            width=120,
            **share.mirror("hash_round", range(count), 0, key=f"{key}.round"),
        )


def _hash(seen: Seen, number: int) -> Step:
    buckets = seen.parts["buckets"][number]
    n, sizes = len(buckets), np.bincount(buckets)
    inside, outside = hash_rounds.likeness(seen.qkv.q[seen.head].numpy(), buckets)
    fullest, filled = np.flatnonzero(buckets == sizes.argmax()), np.flatnonzero(sizes)

    def draw(key: str) -> None:
        _pick_round(seen, key)
        notes = [_("token {i}: bucket {bucket}", i=i, bucket=bucket) for i, bucket in enumerate(buckets)]
        st.html(painted(seen.qkv.tokens, _colours(seen, number), notes=notes))
        st.caption(_("The buckets that hold any token, with how many:"))
        legend = [_("bucket {bucket}: {count}", bucket=bucket, count=sizes[bucket]) for bucket in filled]
        st.html(painted(legend, range(len(filled)), notes=legend))

    words = _(
        "Round {number} puts {n} tokens into **{filled} buckets**; the fullest holds {most}: {names}.",
        number=number + 1,
        n=n,
        filled=len(filled),
        most=len(fullest),
        names=", ".join(_("“{token}”", token=literal(seen.labels[i])) for i in fullest[:5])
        + (_(" and {more} more", more=len(fullest) - 5) if len(fullest) > 5 else ""),
    )
    if np.isfinite(inside) and np.isfinite(outside):
        words += " " + _(
            "Two tokens of one bucket have a mean cosine of {inside:.2f}, two of different ones {outside:.2f}.",
            inside=inside,
            outside=outside,
        )
    return Step(
        title=_("Hash"),
        formula=r"b(i) = \operatorname{argmax}\,[x_i R;\, -x_i R],\qquad x_i = \frac{q_i}{\lVert q_i \rVert} = k_i",
        shapes={"x": tuple(seen.qkv.q.shape[1:]), "b": tuple(seen.parts["buckets"].shape)},
        sentence=words,
        draw=draw,
    )


def _colours(seen: Seen, number: int) -> list[int]:
    """A colour for each token's bucket: those that hold any token take the colours in order."""
    colours: list[int] = np.unique(seen.parts["buckets"][number], return_inverse=True)[1].tolist()
    return colours


def _borders(seen: Seen, number: int) -> list[int]:
    """Places of the sorted order where a chunk begins."""
    chunks = seen.parts["chunks"][number][seen.parts["order"][number]]
    return (np.flatnonzero(np.diff(chunks)) + 1).tolist()


def _sort(seen: Seen, number: int) -> Step:
    order, buckets = seen.parts["order"][number], seen.parts["buckets"][number].tolist()
    n, borders = len(order), _borders(seen, number)
    size = seen.attention.params.bucket_size  # type: ignore[attr-defined]
    place = np.argsort(order)
    farthest = int(np.abs(place - np.arange(n)).argmax())
    alike = np.diff(seen.parts["buckets"][number][order]) == 0
    apart = np.where(alike, np.diff(order), 0)
    colours = _colours(seen, number)

    def draw(key: str) -> None:
        _pick_round(seen, key)
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
                borders=set(np.flatnonzero(np.isin(order, marks)).tolist()),
            )
        )
        st.caption(_("The text in the sorted order; a line stands between two chunks."))

    if not alike.any():
        words = _("No two of {n} tokens share a bucket, so the order brings none together.", n=n)
    else:
        at = int(apart.argmax())
        words = _(
            "Sorting brings **“{one}”** and **“{other}”** side by side, of one bucket and {distance} tokens apart in "
            "the text; “{token}” moves farthest, {moved} places. The order is cut into {chunks} chunks, {how}.",
            one=literal(seen.labels[order[at]]),
            other=literal(seen.labels[order[at + 1]]),
            distance=int(apart[at]),
            token=literal(seen.labels[farthest]),
            moved=int(abs(place[farthest] - farthest)),
            chunks=len(borders) + 1,
            how=_("each bucket by itself, every {size} places", size=size)
            if seen.causal
            else _("every {size} places, no matter where a bucket ends", size=size),
        )
    return Step(
        title=_("Sort and cut"),
        formula=r"\pi = \operatorname{argsort}(b(i),\, i),\qquad c(i) = \left\lfloor \pi^{-1}(i) / s \right\rfloor",
        shapes={r"\pi": (n,), "c": (n,)},
        sentence=words,
        draw=draw,
    )


def _hashed(seen: Seen, number: int) -> Hashed:
    found = compute.hashed(seen.source, seen.attention, number, head=seen.head, causal=seen.causal)
    assert found is not None
    return found


def _cut(seen: Seen, number: int) -> Step:
    found = _hashed(seen, number)
    counts = {name: int(part.sum()) for name, part in found.parts.items()}
    n = len(found.order)
    size = seen.attention.params.bucket_size  # type: ignore[attr-defined]
    possible = n * (n - 1) // (2 if seen.causal else 1)

    def draw(key: str) -> None:
        _pick_round(seen, key)
        kinds = Kinds([found.parts])
        codes = hide_future(kinds.codes(found.parts), causal=seen.causal)
        sorted_labels = [seen.labels[i] for i in found.order]
        matrix_board(
            [
                Panel(
                    key="sorted",
                    title=_("In the sorted order"),
                    caption=_("lines: where chunks begin"),
                    values=codes[np.ix_(found.order, found.order)],
                    row_labels=sorted_labels,
                    col_labels=sorted_labels,
                    borders=found.borders,
                ),
                Panel(
                    key="text",
                    title=_("In the order of the text"),
                    caption="",
                    values=codes,
                    row_labels=seen.labels,
                    col_labels=seen.labels,
                ),
            ],
            row_labels=None,
            col_labels=None,
            key=f"{key}.chunks",
            categories=kinds.categories,
            none=_("may not look"),
            unit=_("Allowed by"),
            file_name="chunks",
        )

    return Step(
        title=_("Who may look"),
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
