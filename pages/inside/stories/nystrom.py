"""Nyström attention, explained step by step on the Inside page.

The steps show landmarks, three small factors, and the inverse of the middle factor. With an approximate inverse, the
product is often closer to softmax than with the exact one.
"""

from dataclasses import replace

import numpy as np
import streamlit as st

from app.jobs import cached
from app.words.i18n import N_, _, _n, paragraph
from attention_core.analysis.low_rank.factors import product, relative_error_of
from attention_core.analysis.masks import membership
from pages.inside import pictures
from pages.inside.nystrom_inverse import INVERSE, LEFT, RIGHT, inverse_step, landmark_panel
from pages.inside.pictures import RESULT, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step
from pages.inside.tokens import alternating_colours, coloured_text
from pages.inside.words.nystrom import (
    blur_sentence,
    error_caption,
    inverse_benefit,
    inverse_count,
    inverse_effect,
    landmark_sizes,
    negative_weights,
    product_headline,
    sized,
)


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: factors, landmarks, inverse, comparison with the reference."""
    rows = data.weights.sum(-1)
    ending = _(
        "Negative entries account for {negative:.1%} of the total absolute weight. The row sums range "
        "from {low:.2f} to {high:.2f}.",
        negative=np.abs(np.minimum(data.weights, 0)).sum() / np.abs(data.weights).sum(),
        low=rows.min(),
        high=rows.max(),
    )
    return _factors(data), _landmarks(data), inverse_step(data), compare_with_reference(data, ending)


def _shares(data: HeadData) -> dict[str, np.ndarray]:
    """Return the share of each token in each landmark, ``[m, n]``, under the keys ``"query"`` and ``"key"``."""
    return {
        name: membership.membership(x, *_settings(data))
        for name, x in membership.landmark_inputs(data.qkv, data.head).items()
    }


def _settings(data: HeadData) -> tuple[int, str]:
    return data.setting("landmarks"), data.setting("method")


def _labels(data: HeadData, shares: np.ndarray) -> list[str]:
    """Return one label per landmark: its number, its first three tokens, and "…" if it has more.

    Args:
        data: the variant on a head.
        shares: the share of each token in each landmark, ``[m, n]``.
    """
    members = [[data.labels[j] for j in np.flatnonzero(row)] for row in shares]
    return [f"{i}: {' '.join(tokens[:3])}{' …' if len(tokens) > 3 else ''}" for i, tokens in enumerate(members)]


@lazy_step(N_("Landmarks"))
def _landmarks(data: HeadData) -> Step:
    """Build the step that shows which tokens each landmark averages."""
    found = _shares(data)
    m, n = found["query"].shape
    means = data.setting("method") == "segment_means" or m == n
    vectors = membership.landmark_inputs(data.qkv, data.head)
    lost = {name: membership.lost_variance(vectors[name], share) for name, share in found.items()}
    findings, sizes = _landmark_findings(data, found, lost, means=means)
    drawn = {"query": found["query"]} if means else found
    titles = {"query": _("Query landmarks"), "key": _("Key landmarks")}

    def draw(key: str) -> None:
        for name, of in drawn.items():
            owners, members = of.argmax(0).tolist(), _labels(data, of)
            if not means:
                st.markdown(f"**{titles[name]}**")
            notes = [members[owner] for owner in owners]
            st.html(coloured_text(data.qkv.tokens, alternating_colours(owners), notes=notes, tags=owners))
        if m < n:
            st.markdown("**" + _("Variance that each landmark discards") + "**")
            pictures.bars(
                {_("queries"): 100 * lost["query"], _("keys"): 100 * lost["key"]},
                [str(i) for i in range(m)],
                key=f"{key}.lost",
                x_title=_("landmark"),
                y_title=_("% of all variance"),
                alt=_("Bars: the share of the variance of queries and of keys that each landmark discards"),
            )

    return Step(
        mechanism=_(
            "Similar tokens are averaged into landmarks, separately for queries and keys. In the text, each small "
            "number is the number of a landmark. All tokens from there to the next number belong to this landmark."
        )
        if not means
        else _("In the text, a small number marks each landmark.")
        if m == n
        else _(
            "Neighbouring queries are averaged into query landmarks, and neighbouring keys into key "
            "landmarks. In the text, a small number marks the first token of each landmark."
        ),
        formula=r"\tilde q_i = \frac{1}{|S_i|} \sum_{j \in S_i} q_j, \qquad "
        r"\tilde k_i = \frac{1}{|S'_i|} \sum_{j \in S'_i} k_j",
        shapes={r"\tilde Q": (m, data.qkv.q.shape[-1]), r"\tilde K": (m, data.qkv.k.shape[-1])},
        findings=findings,
        details=sizes,
        draw=draw,
    )


def _landmark_findings(
    data: HeadData, shares: dict[str, np.ndarray], lost: dict[str, np.ndarray], *, means: bool
) -> tuple[str, str]:
    """Return the findings and the details of the step about landmarks."""
    m, n = shares["query"].shape
    if m == n:
        alone = _n(
            "The only token is its own landmark, so nothing is averaged.",
            "Each of the {n} tokens is its own landmark, so nothing is averaged.",
            n=n,
        )
        return alone, ""
    sizes = {name: (share > 0).sum(-1) for name, share in shares.items()}
    if means:
        text = landmark_sizes(m, sizes["query"].min(), sizes["query"].max())
    else:
        text = paragraph(
            _n(
                "{tokens} tokens are averaged into {n} landmark.",
                "{tokens} tokens are averaged into {n} landmarks of similar tokens. The largest query landmark "
                "averages {query} queries, and the largest key landmark averages {key} keys.",
                n=m,
                tokens=n,
                query=sizes["query"].max(),
                key=sizes["key"].max(),
            ),
            _(
                "One more iteration of k-means would move the landmarks by {drift:.1%} of their length.",
                drift=max(
                    membership.landmark_drift(x, *_settings(data))
                    for x in membership.landmark_inputs(data.qkv, data.head).values()
                ),
            ),
        )
    return blur_sentence(lost["query"].sum(), lost["key"].sum()), text


def _factors(data: HeadData) -> Step:
    left, middle, right, inverse = (data.parts[name] for name in ("left", "middle", "right", "inverse"))
    n, m = left.shape
    without, error = (relative_error_of(each, data.reference) for each in (product(left, right), data.weights))

    def draw(key: str) -> None:
        landmark = _("landmark")
        inverted = _("exact inverse") if data.setting("inverse") == "exact" else _("approximate inverse")
        sides_top = float(max(left.max(), right.max()))
        top = float(max(np.abs(data.weights).max(), np.abs(data.reference).max()))
        lookup = pictures.panel(
            "L", left, data.labels, column=landmark, caption=sized(_("queries to landmarks"), left), mark=LEFT
        )
        spread = pictures.panel(
            "R", right, None, data.labels, row=landmark, caption=sized(_("landmarks to keys"), right), mark=RIGHT
        )
        approximation = pictures.pair_panel(data, "A", data.weights, error_caption(error), mark=RESULT)
        target = replace(
            pictures.reference_panel(data),
            title=_("{name} (target)", name=pictures.reference_title(data)),
            caption=pictures.strong_column(data),
            scale_panel="A",
        )
        pictures.board(
            f"{key}.factors",
            replace(lookup, top=sides_top, full_side=n),
            replace(landmark_panel("Z", inverse, sized(inverted, inverse), mark=INVERSE), full_side=n, sign="×"),
            replace(spread, top=sides_top, full_side=n, scale_panel="L", sign="×"),
            replace(approximation, top=top, sign="="),
            replace(target, top=top, sign="≈"),
            scale="panel",
        )

    return Step(
        title=_("Three factors"),
        headline=product_headline(averaged=m < n),
        mechanism=paragraph(
            _("The product L × R without Z would blur the weights twice.")
            if m == n
            else _("Each landmark is an average of neighbouring tokens, so L and R both blur.")
            if data.setting("method") == "segment_means"
            else _("Each landmark is an average of similar tokens, so L and R both blur."),
            _("Z, an inverse of the landmarks' weights on each other, is meant to undo one of the two blurs."),
        ),
        formula=rf"{symbol(RESULT, 'A')} = "
        rf"{symbol(LEFT, 'L')} \times {symbol(INVERSE, 'Z')} \times {symbol(RIGHT, 'R')}",
        shapes={
            r"L = \operatorname{softmax}(Q \tilde K^\top / \sqrt d)": left.shape,
            r"Z \approx \operatorname{softmax}(\tilde Q \tilde K^\top / \sqrt d)^{-1}": middle.shape,
            r"R = \operatorname{softmax}(\tilde Q K^\top / \sqrt d)": right.shape,
        },
        findings=paragraph(
            ""
            if m < n
            else _("Every token is its own landmark, so no tokens are averaged and no information is lost."),
            inverse_benefit(without, error),
            inverse_count(cached.errors_without_inverse(data.source, data.attention)),
            inverse_effect(without, error, float(np.abs(inverse).max()), averaged=m < n),
            negative_weights(data.weights),
        ),
        draw=draw,
    )
