"""Reformer, explained step by step on the Inside page: hash, sort, cut into chunks, and show the missed pairs."""

import numpy as np
import streamlit as st

from app.figures.sorting import sorting
from app.jobs import cached
from app.matrix_board import Panel, matrix_board
from app.matrix_board.pair_kinds import PairKinds, hide_future
from app.ui import chart
from app.words.i18n import N_, _, paragraph
from app.words.isolation import isolate
from app.words.labels import reference_name
from attention_core.analysis.masks.pattern import HashOrder
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step
from pages.inside.tokens import coloured_text
from pages.inside.words.reformer import cut_sentence, filled_sentence, held_sentence, sort_sentence

MAX_LISTED = 8
"""Number of missed pairs that are listed."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: chunks, hash, sort, missed pairs, comparison with the reference."""
    number = InsideOptions.hash_round.restrict_to(range(len(data.parts["buckets"])))
    return (
        _chunks(data, number),
        _hash(data, number),
        _sort(data, number),
        _missed(data),
        compare_with_reference(
            data,
            _(
                "Because queries are also used as keys, the reference is {reference}: a softmax that leaves out the "
                "query's own token.",
                reference=reference_name(data.attention),
            ),
        ),
    )


def _pick_round(data: HeadData) -> None:
    count = len(data.parts["buckets"])
    if count > 1:
        InsideOptions.hash_round.draw(options=range(count), format_func=lambda i: str(i + 1))


def _hash(data: HeadData, number: int) -> Step:
    buckets = data.parts["buckets"][number]
    n, sizes = len(buckets), np.bincount(buckets)
    fullest, filled = np.flatnonzero(buckets == sizes.argmax()), np.flatnonzero(sizes)

    def draw(key: str) -> None:
        _pick_round(data)
        notes = [_("token {i}: bucket {bucket}", i=i, bucket=bucket) for i, bucket in enumerate(buckets)]
        colours = np.searchsorted(filled, buckets).tolist()
        st.html(coloured_text(data.qkv.tokens, colours, notes=notes, tags=buckets.tolist()))
        st.caption(
            _(
                "Colours and small numbers show the buckets. A token without a number is in the bucket of the token "
                "before it."
            )
        )

    words = filled_sentence(number + 1, n, len(filled), [data.labels[i] for i in fullest])
    same, others = buckets[:, None] == buckets, ~np.eye(n, dtype=bool)
    weights = np.where(others, data.parts["all_pairs"], 0.0)
    if n > 1 and len(filled) > 1 and weights.any():
        held, at_random = weights[same].sum() / weights.sum(), same[others].mean()
        found = held_sentence(reference_name(data.attention), float(held), float(at_random))
    else:
        found, words = words, ""
    return Step(
        title=_("Hash"),
        mechanism=_(
            "Random vectors R split the space of queries into buckets. Tokens with similar queries are likely to fall "
            "into the same bucket."
        ),
        formula=symbol(0, "b")
        + r"(i) = \operatorname{argmax}\,[x_i R;\, -x_i R],\qquad x_i = \frac{q_i}{\lVert q_i \rVert} = k_i",
        shapes={"x": tuple(data.qkv.q.shape[1:]), "b": tuple(data.parts["buckets"].shape)},
        findings=found,
        details=words,
        draw=draw,
    )


def _borders(data: HeadData, number: int) -> list[int]:
    """Return the positions at which a chunk begins after the sort of hashing round ``number``, without position 0."""
    chunks = data.parts["chunks"][number][data.parts["order"][number]]
    return (np.flatnonzero(np.diff(chunks)) + 1).tolist()


def _sort(data: HeadData, number: int) -> Step:
    order, buckets = data.parts["order"][number], data.parts["buckets"][number].tolist()
    n, borders = len(order), _borders(data, number)
    size = data.setting("bucket_size")
    positions = np.argsort(order)
    farthest = np.abs(positions - np.arange(n)).argmax()
    same_bucket = np.diff(data.parts["buckets"][number][order]) == 0
    distances = np.where(same_bucket, np.diff(order), 0)

    def draw(key: str) -> None:
        _pick_round(data)
        figure = sorting(
            order,
            buckets,
            data.labels,
            borders=borders,
            above=_("text"),
            below=_("sorted"),
            x_title=_("position"),
            kind=_("bucket"),
        )
        chart.show(
            figure,
            key=f"{key}.sorting",
            name="sorting",
            alt=_("Lines: every token from its position in the text to its position in the sorted order"),
        )
        marks = [int(order[i]) for i in borders]
        notes = [_("token {i}: bucket {bucket}", i=i, bucket=buckets[i]) for i in order]
        st.html(
            coloured_text(
                [data.labels[i] for i in order],
                np.searchsorted(np.unique(buckets), [buckets[i] for i in order]).tolist(),
                notes=notes,
                tags=[buckets[i] for i in order],
                positions=order.tolist(),
                borders=set(np.flatnonzero(np.isin(order, marks)).tolist()),
            )
        )
        st.caption(
            _(
                "Tokens sorted by bucket. A small number shows the bucket wherever a new one begins. "
                "Vertical lines separate chunks."
            )
        )

    cut = ""
    if not same_bucket.any():
        words = _("No two of the {n} tokens are in the same bucket.", n=n)
    else:
        at = distances.argmax()
        words = sort_sentence(
            data.token(order[at]),
            data.token(order[at + 1]),
            int(distances[at]),
            data.token(farthest),
            int(abs(positions[farthest] - farthest)),
        )
        cut = cut_sentence(len(borders) + 1, size, causal=data.causal)
    return Step(
        title=_("Sort"),
        mechanism=_(
            "Tokens are sorted by bucket (tokens with the same hash), and the sorted tokens are split into chunks."
        ),
        formula=r"\pi = \operatorname{argsort}("
        + symbol(0, "b")
        + r"(i),\, i),\qquad c(i) = \left\lfloor \pi^{-1}(i) / s \right\rfloor",
        shapes={r"\pi": (n,), "c": (n,)},
        findings=words,
        details=cut,
        draw=draw,
    )


def _hashed(data: HeadData, number: int) -> HashOrder:
    hashed = cached.hash_order(data.source, data.attention, number, head=data.head, causal=data.causal)
    assert hashed is not None
    return hashed


@lazy_step(N_("Chunks"))
def _chunks(data: HeadData, number: int) -> Step:
    hashed = _hashed(data, number)
    counts = {name: part.sum() for name, part in hashed.parts.items()}
    n = len(hashed.order)
    size = data.setting("bucket_size")
    possible = n * (n - 1) // (2 if data.causal else 1)
    allowed = _(
        "In hashing round {number}, **{bucket:,}** query–key pairs within a bucket and {chunk:,} pairs from different "
        "buckets are allowed. Another {missed:,} pairs share a bucket in this round, but the key is in neither the "
        "query's chunk nor the previous one, and no other round allows the pair.",
        number=number + 1,
        bucket=counts["bucket"],
        chunk=counts["chunk"],
        missed=counts["missed"],
    )

    def draw(key: str) -> None:
        kinds = PairKinds([hashed.parts])
        codes = hide_future(kinds.codes(hashed.parts), causal=data.causal)
        sorted_labels = [data.labels[i] for i in hashed.order]
        board, side = st.columns([5, 3], gap="large")
        with board:
            matrix_board(
                [
                    Panel(
                        "sorted",
                        _("Sorted order"),
                        _("lines: chunk boundaries"),
                        codes[np.ix_(hashed.order, hashed.order)],
                        row_labels=sorted_labels,
                        col_labels=sorted_labels,
                        borders=hashed.borders,
                    ),
                    Panel("text", _("Text order"), "", codes),
                ],
                labels=data.labels,
                key=f"{key}.chunks",
                categories=kinds.categories,
                zero=_("not allowed"),
                unit=_("Allowed by"),
                file_name="chunks",
            )
        with side:
            _pick_round(data)
            st.markdown(allowed)

    return Step(
        mechanism=paragraph(
            _("Tokens with the same hash form a bucket. The tokens are sorted by bucket and cut into chunks."),
            _("A token attends to its own chunk and to the previous chunk.")
            if not data.causal
            else _(
                "A token attends to earlier tokens of its bucket if they are in the same chunk or in the previous "
                "chunk."
            ),
        ),
        formula=r"P_i = \{\, j \ne i : c(i) - c(j) \in \{0, 1\} \,\}"
        + (r" \cap \{ j < i \} \cap \{ b(j) = b(i) \}" if data.causal else ""),
        shapes={"A": (n, n), r"\text{chunk}": (min(size, n),)},
        findings=_(
            "All hashing rounds together allow **{share:.1%}** of the {possible:,} query–key pairs.",
            share=(counts["bucket"] + counts["chunk"] + counts["round"]) / max(1, possible),
            possible=possible,
        ),
        draw=draw,
    )


def allowed_pairs(data: HeadData) -> np.ndarray:
    """Return the mask of the pairs allowed in some round, including the diagonal, ``bool [n, n]``."""
    allowed: np.ndarray = (data.weights > 0) | np.eye(len(data.weights), dtype=bool)
    return allowed


@lazy_step(N_("Missed pairs"))
def _missed(data: HeadData) -> Step:
    """Build the step that lists the pairs with the largest softmax weights among those that no hashing round allows."""
    full, reference = data.parts["all_pairs"], reference_name(data.attention)
    unseen = np.where(allowed_pairs(data), 0.0, full)
    together = data.parts["missed"].astype(bool)
    n, lost = len(full), unseen.sum(-1)
    worst = np.argsort(-unseen, axis=None, kind="stable")[:MAX_LISTED]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(worst, unseen.shape), strict=True) if unseen[i, j] > 0]

    def draw(key: str) -> None:
        hidden = np.where(data.weights > 0, np.nan, unseen).astype(np.float32)
        masked = (
            _("hatched: allowed pairs, and pairs with a future key") if data.causal else _("hatched: allowed pairs")
        )
        pictures.board(
            f"{key}.missed",
            pictures.pair_panel(data, _("Missed pairs"), hidden, masked),
            pictures.pair_panel(data, reference[0].upper() + reference[1:], full),
        )
        if pairs:
            st.dataframe(
                [
                    {
                        _("query"): f"{i} {isolate(data.labels[i])}",
                        _("key"): f"{j} {isolate(data.labels[j])}",
                        _("softmax weight"): 100 * float(full[i, j]),
                        _("why the pair is missed"): _("different chunks")
                        if together[i, j]
                        else _("different buckets"),
                    }
                    for i, j in pairs
                ],
                hide_index=True,
                column_config={_("softmax weight"): st.column_config.NumberColumn(format="%.1f %%")},
            )

    words, sharing = _("All query–key pairs are allowed, so no pair is missed."), ""
    if pairs:
        i, j = pairs[0]
        words = _(
            "**{lost:.0%}** of the weight of {reference} falls on pairs that are not allowed. The missed "
            "pair with the largest weight is **“{query}” → “{key}”**, with {weight:.0%} of its row's weight.",
            reference=reference,
            lost=lost.mean(),
            query=data.token(i),
            key=data.token(j),
            weight=full[i, j],
        )
        sharing = _(
            "Pairs that are not allowed but share a bucket in at least one hashing round: {together:,}. "
            "{part:.1%} of the weight of {reference} falls on these pairs.",
            together=together.sum(),
            part=full[together].sum() / n,
            reference=reference,
        )
    return Step(
        mechanism=_(
            "A query–key pair that is not allowed in any hashing round gets no weight, so its softmax weight is lost."
        ),
        formula=r"\text{missed} = \frac1n \sum_i \sum_{j \notin P_i} \operatorname{softmax}_{j \ne i}"
        r"\!\left(\frac{q_i^\top q_j}{\lVert q_j \rVert}\right)",
        shapes={"S": (n, n)},
        findings=words,
        details=sharing,
        draw=draw,
    )
