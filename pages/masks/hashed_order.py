"""The view of the Masks page for Reformer, which hashes tokens: their order after sorting by hash, round by round."""

import numpy as np
import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.matrix_board import Panel, matrix_board
from app.matrix_board.pair_kinds import PairKinds, hide_future
from app.state.session import SharedOptions, with_chosen_settings
from app.words.i18n import _, _n, paragraph
from app.words.labels import label
from attention_core.analysis.masks.pattern import HashOrder
from attention_core.limits import current
from pages.masks.options import MasksOptions
from pages.masks.patterns import Masks

HASHING = "reformer"
"""Key of the variant that sorts tokens by a hash."""


def show(masks: Masks) -> None:
    """Draw the choice of a hash round and a board of the allowed pairs in the order of that round."""
    round_index = MasksOptions.hash_round.value
    hashes = {a: h for a in masks.sparse if (h := _hashed(masks, a, round_index)) is not None}
    if not hashes:
        st.info(_("No variant that is shown sorts tokens by a hash."))
        if not has_hashing():
            st.button(_("Add Reformer"), icon=":material/add:", on_click=_add_hashing, key="order.add")
        return
    attention, hashed = next(iter(hashes.items()))
    if round_index >= hashed.rounds:
        round_index = MasksOptions.hash_round.restrict_to(range(hashed.rounds))
        hashed = _hashed(masks, attention, round_index) or hashed
    with st.container(horizontal=True, vertical_alignment="bottom"):
        MasksOptions.hash_order.draw()
        MasksOptions.hash_round.draw(options=range(hashed.rounds), format_func=lambda i: str(i + 1))
    _hash_board(masks, attention, hashed)
    st.caption(
        sorting_note(
            int(hashed.parts["missed"].sum()),
            head=masks.view.head or 0,
            is_sorted=MasksOptions.hash_order.value == "sorted",
            causal=masks.view.causal,
            rounds=hashed.rounds,
        )
    )


def has_hashing() -> bool:
    """Return whether the visitor has chosen the variant that sorts tokens by a hash."""
    return any(attention.key == HASHING for attention in SharedOptions.variants.value)


def _add_hashing() -> None:
    chosen = SharedOptions.variants.value[: current().compared_variants - 1]
    SharedOptions.variants.set((*chosen, with_chosen_settings(HASHING)))


def sorting_note(missed: int, *, head: int, is_sorted: bool, causal: bool, rounds: int) -> str:
    """Return sentences about a hash round, and about the ``missed`` pairs that share a bucket but are not allowed."""
    return paragraph(
        _(
            "A hashing round assigns each token to a bucket and sorts the tokens by bucket, then by position. "
            "The sorted tokens are split into chunks. A token can attend to tokens in its own chunk and in the "
            "previous chunk."
        ),
        _(
            "With a causal mask, both tokens must also be in the same bucket. Earlier queries use another hashing, "
            "which covers only the beginning of the text."
        )
        if causal
        else "",
        _(
            "The tokens are shown in sorted order, so the pairs that this round allows lie near the diagonal. Lines "
            "separate the chunks."
        )
        if is_sorted
        else "",
        _("Another hashing allows the pairs far from it.") if is_sorted and (causal or rounds > 1) else "",
        _n(
            "In head {head}, {n:,} pair shares a bucket in this hashing round, but it is not allowed. No round puts "
            "the key into the query's chunk or the previous chunk.",
            "In head {head}, {n:,} pairs share a bucket in this hashing round, but they are not allowed. No round "
            "puts the key into the query's chunk or the previous chunk.",
            n=missed,
            head=head,
        )
        if missed
        else _("In head {head}, every pair in the same bucket in this hashing round is allowed.", head=head),
    )


def _hashed(masks: Masks, attention: ac.Attention, round_index: int) -> HashOrder | None:
    view = masks.view
    return cached.hash_order(view.source, attention, round_index, head=view.head or 0, causal=view.causal)


def _hash_board(masks: Masks, attention: ac.Attention, hashed: HashOrder) -> None:
    is_sorted, round_index = MasksOptions.hash_order.value == "sorted", MasksOptions.hash_round.value + 1
    order = hashed.order if is_sorted else np.arange(len(hashed.order))
    labels = [masks.labels[i] for i in order]
    kinds = PairKinds([hashed.parts])
    codes = hide_future(kinds.codes(hashed.parts), causal=masks.view.causal)
    matrix_board(
        [
            Panel(
                "order",
                label(attention),
                _("round {number}, sorted by bucket", number=round_index)
                if is_sorted
                else _("round {number}, in text order", number=round_index),
                codes[np.ix_(order, order)],
                borders=hashed.borders if is_sorted else (),
            )
        ],
        labels=labels,
        key="masks.order",
        categories=kinds.categories,
        zero=_("not allowed"),
        masked=_("future key"),
        unit=_("Allowed by"),
        panel_size=720,
        file_name="hashed-order",
    )
