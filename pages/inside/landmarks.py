"""Landmark step and pictures shared by the stories of Nyström attention and of the double softmax."""

import numpy as np
import streamlit as st

from app.matrix_board import Panel
from app.words.i18n import N_, _, paragraph
from attention_core.analysis.masks import membership
from pages.inside import pictures
from pages.inside.story import Seen, Step, later
from pages.inside.tokens import painted


def shares(seen: Seen) -> dict[str, np.ndarray]:
    """Return the share of each token in each landmark, ``[m, n]``, under the keys ``"query"`` and ``"key"``."""
    return {
        name: membership.membership(x, *_settings(seen)) for name, x in membership.sides(seen.qkv, seen.head).items()
    }


def labels(seen: Seen, of: np.ndarray) -> list[str]:
    """Return one label per landmark: its first three tokens, and "…" if it has more.

    Args:
        seen: the variant on a head.
        of: the share of each token in each landmark, ``[m, n]``.
    """
    held = [np.flatnonzero(row) for row in of]
    return [" ".join(seen.labels[j] for j in own[:3]) + (" …" if len(own) > 3 else "") for own in held]


def names(seen: Seen) -> tuple[list[str], list[str]]:
    """Return the labels of the query landmarks and of the key landmarks."""
    found = shares(seen)
    return labels(seen, found["query"]), labels(seen, found["key"])


def sides(seen: Seen) -> tuple[Panel, Panel]:
    """Return the thin factors ``left`` and ``right`` of the variant as panels."""
    (queries, keys), landmark = names(seen), _("landmark")
    left, right = _("all queries, key landmarks"), _("query landmarks, all keys")
    return (
        pictures.panel(_("Left L"), seen.parts["left"], seen.labels, keys, column=landmark, caption=left),
        pictures.panel(_("Right R"), seen.parts["right"], queries, seen.labels, row=landmark, caption=right),
    )


@later(N_("Landmarks"))
def which(seen: Seen) -> Step:
    """Build the step that shows which tokens each landmark averages."""
    found = shares(seen)
    m, n = found["query"].shape
    means = seen.setting("method") == "segment_means" or m == n
    drawn = {"query": found["query"]} if means else found
    titles = {"query": _("Query landmarks"), "key": _("Key landmarks")}

    def draw(key: str) -> None:
        for name, of in drawn.items():
            if not means:
                st.markdown(f"**{titles[name]}**")
            owners, held = of.argmax(0).tolist(), labels(seen, of)
            text, picture = st.columns(2, gap="medium")
            with text:
                st.html(painted(seen.qkv.tokens, owners, notes=[held[owner] for owner in owners]))
            with picture:
                pictures.board(
                    f"{key}.shares.{name}",
                    pictures.panel(
                        _("Landmarks") if means else titles[name],
                        of,
                        labels(seen, of),
                        seen.labels,
                        row=_("landmark"),
                        column=_("token"),
                    ),
                    unit=_("share of the token in the landmark"),
                    tone="linear",
                )

    return Step(
        formula=r"\tilde q_i = \frac{1}{|S_i|} \sum_{j \in S_i} q_j, \qquad "
        r"\tilde k_i = \frac{1}{|S'_i|} \sum_{j \in S'_i} k_j",
        shapes={r"\tilde Q": (m, seen.qkv.q.shape[-1]), r"\tilde K": (m, seen.qkv.k.shape[-1])},
        sentence=_told(seen, found, means=means),
        draw=draw,
    )


def pooled(m: int, n: int, least: int, most: int) -> str:
    """Return the sentence that says how many neighbouring tokens each landmark averages."""
    if least == most:
        return _("{m} landmarks stand for {n} tokens; each is the mean of {most} neighbours.", m=m, n=n, most=most)
    return _(
        "{m} landmarks stand for {n} tokens; each is the mean of {least} to {most} neighbours.",
        m=m,
        n=n,
        least=least,
        most=most,
    )


def _told(seen: Seen, found: dict[str, np.ndarray], *, means: bool) -> str:
    m, n = found["query"].shape
    if m == n:
        return _("Every one of the {n} tokens is its own landmark: nothing is averaged, nothing is lost.", n=n)
    sizes = {name: (of > 0).sum(-1) for name, of in found.items()}
    vectors = membership.sides(seen.qkv, seen.head)
    gone = {name: membership.lost(vectors[name], of) for name, of in found.items()}
    if means:
        text = pooled(m, n, sizes["query"].min(), sizes["query"].max())
    else:
        text = _(
            "{m} landmarks stand for {n} tokens; each is the mean of tokens that are alike, at most {query} queries or "
            "{key} keys. Each token is shown at its nearest landmark; moved to the means of these, they would move by "
            "{drift:.1%}.",
            m=m,
            n=n,
            query=sizes["query"].max(),
            key=sizes["key"].max(),
            drift=max(membership.drift(x, *_settings(seen)) for x in vectors.values()),
        )
    forgotten = _(
        "Within landmarks lie {query:.0%} of the queries' variance and {key:.0%} of the keys': that is what the "
        "averages forget.",
        query=gone["query"],
        key=gone["key"],
    )
    return paragraph(text, forgotten)


def _settings(seen: Seen) -> tuple[int, str]:
    return seen.setting("landmarks"), seen.setting("method")
