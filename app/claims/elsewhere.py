"""Where each claim can be seen at large: a page, and how it is opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from app import navigation, share
from app.page import discover
from app.text import _
from app.visit import Visit, read_variants


@dataclass(frozen=True)
class Place:
    """A page as a claim opens it.

    Attributes:
        path: the page's path in addresses.
        variants: the variants' words; empty for those that are chosen.
        fields: the page's own fields in its address.
    """

    path: str
    variants: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    def query(self, state: Mapping[Any, Any]) -> dict[str, list[str]]:
        """The address's query: the input as it is, with what the claim is about."""
        changes = {"variants": read_variants(list(self.variants))} if self.variants else {}
        link = share.link_of(state, Visit.fields(), **changes)
        return link | {name: [word] for name, word in self.fields.items()}


PLACES = {
    "memory_quadruples": Place("timing", ("softmax", "linear"), {"t_side": "memory"}),
    "linear_cost": Place("timing", ("softmax", "linear"), {"t_side": "work"}),
    "double_softmax": Place("inside", fields={"inside": "efficient", "step": "3"}),
    "cosine_closest": Place("matrices", ("softmax", "cosine", "linear", "efficient")),
    "linformer_rank": Place("error", ("softmax", "linformer"), {"against": "length"}),
    "three_algorithms": Place("causal", fields={"c_view": "algorithms"}),
    "nystrom_all_landmarks": Place("error", ("softmax", "nystrom")),
    "six_iterations": Place("inside", fields={"inside": "nystrom", "step": "3"}),
    "nystrom_beats_performer": Place("error", ("softmax", "nystrom", "performer")),
    "nystrom_deterministic": Place("inside", fields={"inside": "performer"}),
    "pooling_leaks": Place("causal", fields={"c_view": "leak"}),
    "relu2_normaliser": Place("entropy", fields={"h_view": "normalizer"}),
    "log_n_scale": Place("entropy", ("softmax", "relu2")),
    "sparse_costs": Place("masks", ("softmax", "local", "atrous"), {"masks_part": "numbers"}),
    "two_layers": Place("masks", ("softmax", "local", "atrous"), {"masks_part": "reach"}),
    "sparse_time": Place("timing", ("softmax", "local", "sparse", "atrous")),
    "near_diagonal": Place("matrices", ("softmax", "local")),
    "drowning": Place("causal", fields={"c_view": "fading"}),
    "running_sums": Place("causal", fields={"c_view": "gradient"}),
    "landmark_inverse": Place("inside", fields={"inside": "landmark", "step": "3"}),
    "segment_means": Place("inside", fields={"inside": "nystrom~method~kmeans"}),
}
"""By the claim's key; a claim that is not named here has no such link."""


def show(key: str) -> None:
    """A link to the page where a claim can be seen at large on the same input; nothing for a claim without one."""
    place = PLACES.get(key)
    if place is None:
        return
    page = discover()[place.path]
    state = st.session_state
    st.page_link(
        state[navigation.ENTRIES][place.path],
        label=_("See it at large: {page}", page=_(page.title)),
        icon=page.icon,
        query_params=place.query(state),
    )
