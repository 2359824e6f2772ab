"""Below the patterns: how far stacks of them reach, their numbers, the order a hash makes, and what to take away."""

import numpy as np
import streamlit as st

import attention_core as ac
from app import compute, reach_view, share, takeaway
from app.input_panel import Chosen
from app.masks import Found, Kinds, hide_future
from app.matrix_board import Panel, matrix_board
from app.text import _
from app.variant_picker import label
from attention_core.experiments.reach import Hashed, has_pattern


def fields() -> dict[str, share.Field]:
    """What a link carries of this part."""
    return reach_view.fields() | {
        "masks_part": share.choice("reach", "numbers", "order", "download"),
        "hash_order": share.choice("sorted", "original"),
        **hash_choice(),
    }


def hash_choice() -> dict[str, share.Field]:
    """What a link carries of the round of hashing that is looked at."""
    return reach_view.fields() | {"hash_round": share.whole(0, 0, 63)}


def show(found: Found, chosen: Chosen) -> None:
    """Draw one of the parts."""
    if not found.patterns:
        return
    names = {"reach": _("Reach"), "numbers": _("Numbers"), "order": _("Hashed order"), "download": _("Take away")}
    st.segmented_control(
        _("More"),
        list(names),
        key="masks_part",
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    part = st.session_state["masks_part"]
    if part == "reach":
        reach_view.show(found)
    else:
        {"numbers": _numbers, "order": _order, "download": _download}[part](found, chosen)


def _rows(found: Found) -> list[dict[str, object]]:
    possible = "n (n + 1) / 2" if found.view.causal else "n²"
    return [
        {
            _("variant"): label(attention),
            _("pairs per head"): pattern.pairs,
            _("of {possible}", possible=possible): pattern.pairs / pattern.possible,
            _("keys per query"): pattern.pairs / len(found.labels),
            _("pairs, about"): attention.variant.pairs if has_pattern(attention.variant) else "n²",
            _("farthest look"): pattern.farthest,
            _("layers to connect all"): _("never") if pattern.diameter is None else str(pattern.diameter),
        }
        for attention, pattern in found.patterns.items()
    ]


def _numbers(found: Found, chosen: Chosen) -> None:
    rows = _rows(found)
    possible = list(rows[0])[2]
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            _("pairs per head"): st.column_config.NumberColumn(format="localized"),
            possible: st.column_config.NumberColumn(format="percent"),
            _("keys per query"): st.column_config.NumberColumn(format="%.1f"),
            _("farthest look"): st.column_config.NumberColumn(help=_("Largest |i − j| in one layer, in tokens")),
            _("pairs, about"): st.column_config.TextColumn(
                width="medium",
                help=_(
                    "Leading order, not causal. n tokens, w window, r stride, g global tokens, ρ random keys, "
                    "s sinks, k kept, κ share kept, c bucket size."
                ),
            ),
        },
    )
    st.caption(
        _(
            "{n} tokens, {possible:,} pairs that could look. Layers to connect all: this pattern alone, stacked, each "
            "token keeping what it has through the residual connection; 1 to {most} for a connected pattern.",
            n=len(found.labels),
            possible=next(iter(found.patterns.values())).possible,
            most=max(1, len(found.labels) - 1),
        )
    )


def _order(found: Found, chosen: Chosen) -> None:
    state = st.session_state
    hashes = {a: h for a in found.drawn if (h := compute.hashed(found.view, a.word, state["hash_round"])) is not None}
    if not hashes:
        st.info(_("None of these variants sorts the tokens by a hash. Add Reformer to see its order."))
        return
    attention, hashed = next(iter(hashes.items()))
    if state["hash_round"] >= hashed.rounds:
        share.fit(hash_round=range(hashed.rounds))
        hashed = compute.hashed(found.view, attention.word, state["hash_round"]) or hashed
    names = {"sorted": _("sorted"), "original": _("original")}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            _("Order"), list(names), key="hash_order", format_func=names.__getitem__, required=True, width="content"
        )
        st.selectbox(_("Round"), range(hashed.rounds), key="hash_round", format_func=lambda i: str(i + 1), width=120)
    _hash_board(found, attention, hashed)
    st.caption(
        _(
            "A round hashes every token into a bucket, sorts by bucket and position and cuts the order into chunks "
            "(lines): a token sees its chunk and the one before it. In head {head} this round puts {missed:,} pairs "
            "into one bucket that no round lets look. Pairs far from the diagonal are found by other rounds.",
            missed=int(hashed.parts["missed"].sum()),
            head=found.view.head or 0,
        )
    )


def _hash_board(found: Found, attention: ac.Attention, hashed: Hashed) -> None:
    by_hash, number = st.session_state["hash_order"] == "sorted", st.session_state["hash_round"] + 1
    order = hashed.order if by_hash else np.arange(len(hashed.order))
    labels = [found.labels[i] for i in order]
    kinds = Kinds([hashed.parts])
    codes = hide_future(kinds.codes(hashed.parts), causal=found.view.causal)
    matrix_board(
        [
            Panel(
                key="order",
                title=label(attention),
                caption=_("round {number}, sorted by bucket", number=number)
                if by_hash
                else _("round {number}, order of the text", number=number),
                values=codes[np.ix_(order, order)],
                borders=hashed.borders if by_hash else (),
            )
        ],
        row_labels=labels,
        col_labels=labels,
        key="masks.order",
        categories=kinds.categories,
        none=_("may not look"),
        unit=_("Allowed by"),
        panel_size=720,
        file_name="hashed-order",
    )


def _download(found: Found, chosen: Chosen) -> None:
    st.caption(_("The boards' own buttons save them as pictures (PNG, SVG). Here are the numbers."))
    rows = _rows(found)
    arrays = {}
    for attention, pattern in found.patterns.items():
        arrays[attention.key] = pattern.allowed
        arrays |= {f"{attention.key}.{name}": part for name, part in pattern.primitives.items()}
    with st.container(horizontal=True):
        takeaway.download(
            _("Numbers (CSV)"),
            lambda: takeaway.to_csv(list(rows[0]), [list(row.values()) for row in rows]),
            "masks.csv",
            "text/csv",
            "masks.csv",
        )
        takeaway.download(
            _("Masks (NPZ)"), lambda: takeaway.to_npz(arrays), "masks.npz", "application/octet-stream", "masks.npz"
        )
    takeaway.snippet(
        "import torch\nimport attention_core as ac\nfrom attention_core.metrics.reach import smallest_depth\n\n"
        'local, atrous = ac.get("local", window=16), ac.get("atrous", stride=8)\n'
        "stack = [local.mask(512), atrous.mask(512)]\n"
        "print(smallest_depth(stack, causal=False), [mask.sum().item() for mask in stack])\n"
    )
