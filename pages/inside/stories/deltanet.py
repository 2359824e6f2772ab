"""DeltaNet, explained step by step on the Inside page.

The steps show overlapping keys, erasing before writing, and the write strength at which the state explodes.
"""

from dataclasses import replace

import numpy as np
import streamlit as st

from app.jobs import cached
from app.words.i18n import N_, _, paragraph
from attention_core.analysis.low_rank.factors import lengths
from attention_core.analysis.state.delta_state import GrowthByToken
from attention_core.formatting import number
from attention_core.ops.delta.gates import GateParams, channel_gate_kind
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step

ALSO = ("gated_deltanet", "kda")
"""Further variants with this story: the same rule on a state that decays."""
STRENGTHS = tuple(i / 10 for i in range(1, 31))
"""Write strengths tried on the head's own keys; some exceed the variant's limit, to show why the limit exists."""
MIN_TOKENS = 8
"""The pattern of the erased shares is described for at least this number of tokens."""
MOSTLY = 0.8
"""An earlier token is mentioned if at least this part of the erased shares of its stored value is negative."""
MAX_DRAWN_SIZE = 1e12
"""Sizes of the state above this number are not drawn; sizes are divided by the mean norm of the values."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: key overlap, the inverse, what is written, state growth, comparison with the reference."""
    sums = data.weights.sum(-1)
    ending = _(
        "{share:.0%} of the weights are negative. The row sums range from {low:.2g} to {high:.2g}.",
        share=(data.weights[data.visible] < 0).mean(),
        low=sums.min(),
        high=sums.max(),
    )
    growth = () if _by_channel(data) else (_growth(data),)
    return _overlaps(data), _inverse(data), _written(data), *growth, compare_with_reference(data, ending)


def _overlaps(data: HeadData) -> Step:
    overlaps = data.parts["overlaps"]
    before = np.tri(len(overlaps), k=-1, dtype=bool)
    return Step(
        title=_("Key overlap"),
        mechanism=paragraph(
            _(
                "Before a token stores its value under its key, it erases a share of what earlier tokens stored under "
                "similar keys."
            ),
            _("This share is the write strength β times the decayed dot product of the two keys.")
            if _decays(data)
            else _("This share is the write strength β times the dot product of the two keys."),
        ),
        formula=r"\beta_i \sum_c \Gamma_{ijc}\, k_{ic}\, k_{jc},\quad j < i"
        if _by_channel(data)
        else r"\beta_i\, \Gamma_{ij}\, k_i^\top k_j,\quad j < i"
        if _decays(data)
        else r"\beta_i\, k_i^\top k_j,\quad j < i",
        shapes={"k": data.parts["keys"].shape, r"K K^\top": overlaps.shape},
        findings=paragraph(overlap_sentence(overlaps[before]), _pattern(data, overlaps)),
        details=""
        if data.causal
        else _("All tokens write in order. Then every query, including those of early tokens, reads the final state."),
        draw=lambda key: pictures.board(
            key,
            replace(
                pictures.earlier_panel(data, _("Share that is erased"), overlaps, row=_("writing token")),
                caption=_("orange (negative): added instead") if (overlaps[before] < 0).any() else "",
            ),
            *pictures.result_panels(data),
            scale="panel",
            masked=None if data.causal else _("own and later tokens"),
        ),
    )


def _pattern(data: HeadData, overlaps: np.ndarray) -> str:
    """Return the sentences about neighbouring tokens, and about the earlier token with the most negative shares."""
    n = len(overlaps)
    if n < MIN_TOKENS:
        return ""
    negative = [(overlaps[j + 1 :, j] < 0).mean() for j in range(n // 2)]
    j = int(np.argmax(negative))
    average = abs(overlaps[np.tri(n, k=-1, dtype=bool)]).mean()
    return pattern_sentence(np.diagonal(overlaps, -1).mean(), average, data.token(j), negative[j])


def pattern_sentence(near: float, average: float, token: str, negative: float) -> str:
    """Return the sentences about what is visible in the matrix of erased shares.

    Args:
        near: mean erased share of the value that the previous token stored.
        average: mean absolute share over all pairs.
        token: the earlier token with the most negative shares.
        negative: the part of this token's shares that is negative.
    """
    return paragraph(
        _("A token erases {near:.0%} of what the token directly before it stored, on average.", near=near)
        if near > average
        else "",
        ""
        if negative < MOSTLY
        else _(
            "All later tokens add to what “{token}” stored instead of erasing it, because the dot product of the keys "
            "is negative.",
            token=token,
        )
        if negative == 1
        else _(
            "{part:.0%} of the later tokens add to what “{token}” stored instead of erasing it, because the dot "
            "product of the keys is negative.",
            part=negative,
            token=token,
        ),
    )


def overlap_sentence(overlaps: np.ndarray) -> str:
    """Return the sentence about the share of an earlier token's stored value that a later token erases.

    Args:
        overlaps: for each pair of tokens, this share, which can be negative; empty if there is only one token.
    """
    if not overlaps.size:
        return _("There is only one token, so no earlier token stored anything.")
    return _(
        "On average, a token changes what an earlier token stored by {mean:.0%} (erased or added; at most {most:.0%}).",
        mean=abs(overlaps).mean(),
        most=abs(overlaps).max(),
    )


def _inverse(data: HeadData) -> Step:
    inverse = data.parts["inverse"]
    low, high = float(inverse.min()), float(inverse.max())
    unit = data.setting("keys") == "unit" and data.setting("strength") <= 1
    return Step(
        title=_("Corrections"),
        mechanism=_(
            "Each token writes its own value minus the old value that its key finds in the state. The old value is a "
            "mixture of earlier values. Row i of T has one number for each value in the mixture that token i writes."
        ),
        findings=_(
            "Inverting a single matrix gives T, the corrections of all tokens. Without T, each token would have to "
            "wait until all earlier tokens are stored."
        ),
        formula=symbol(0, "T")
        + r" = \left(I + \operatorname{diag}(\beta)\,(K K^\top \odot "
        + (r"\Gamma^-" if _decays(data) else "M^-")
        + r")\right)^{-1}",
        shapes={"T": inverse.shape},
        details=paragraph(
            _("The entries of T range from {low} to {high}.", low=number(low), high=number(high)),
            _("They always lie between −1 and 1 if the keys have length 1 and the write strength β is at most 1.")
            if unit
            else "",
        ),
        draw=lambda key: pictures.board(
            key,
            replace(
                pictures.earlier_panel(data, "T", inverse, row=_("writing token"), diagonal=True, mark=0),
                caption=_("blue: value added, orange: value subtracted"),
            ),
            scale="panel",
            masked=None if data.causal else _("later token"),
        ),
    )


def _written(data: HeadData) -> Step:
    written = lengths(data.parts["written"])
    values = lengths(data.qkv.v[data.head].numpy())
    share = written / np.where(values == 0, 1.0, values)

    def draw(key: str) -> None:
        pictures.bars(
            {"‖u‖ / ‖v‖": share},
            data.labels,
            key=key,
            x_title=_("token"),
            y_title="‖u‖ / ‖v‖",
            alt=_("Bars: the length of the vector that each token writes, relative to the length of the token's value"),
        )

    return Step(
        title=_("Writes"),
        mechanism=_(
            "The state returns a value for each token's key. The token adds only the difference between its own value "
            "and this returned value. The write strength β scales this difference."
        ),
        formula=r"u_i = \beta_i \left(v_i - S_{i-1}^\top k_i\right),\qquad S_i = S_{i-1} + k_i u_i^\top"
        if not _decays(data)
        else r"u_i = \beta_i \left(v_i - (D_i S_{i-1})^\top k_i\right),\qquad S_i = D_i S_{i-1} + k_i u_i^\top,\qquad "
        r"D_i = \operatorname{diag}(\alpha_i)"
        if _by_channel(data)
        else r"u_i = \beta_i \left(v_i - \alpha_i S_{i-1}^\top k_i\right),\qquad S_i = \alpha_i S_{i-1} + k_i u_i^\top",
        shapes={"U": data.parts["written"].shape, "S": (data.parts["keys"].shape[-1], data.qkv.v.shape[-1])},
        findings=_(
            "The written vector is {middle:.0%} as long as the token's value (median over tokens). The more similar "
            "the retrieved value is to the token's own value, the less is written.",
            middle=np.median(share),
        ),
        details=_(
            "The ratio of both lengths is smallest for “{least}” ({low:.0%}) and largest for “{most}” ({high:.0%}).",
            least=data.token(share.argmin()),
            low=share.min(),
            most=data.token(share.argmax()),
            high=share.max(),
        ),
        draw=draw,
    )


@lazy_step(N_("Stability"))
def _growth(data: HeadData) -> Step:
    growth = cached.growth_by_strength(data.source, data.attention, head=data.head, strengths=STRENGTHS)
    value_length = lengths(data.qkv.v[data.head].numpy()).mean() or 1.0
    sizes = growth.sizes / value_length
    exact = data.setting("keys") == "exact"

    def draw(key: str) -> None:
        tenths: int = InsideOptions.write.draw(
            label=_("Rate η (sets β)") if exact else _("Write strength β"),
            options=range(1, 1 + len(STRENGTHS)),
            format_func=lambda tenths: f"{tenths / 10:.1f}",
        )
        strength = STRENGTHS[tenths - 1]
        written = cached.growth_by_token(data.source, data.attention, head=data.head, strength=strength)
        left, right = st.columns([3, 2], gap="medium")
        with left:
            pictures.lines(
                [Curve("‖S‖", list(STRENGTHS), [float(y) if y < MAX_DRAWN_SIZE else None for y in sizes], colour=0)],
                key=key,
                x_title=_("rate η") if exact else _("write strength β"),
                y_title=_("final norm of the state / mean norm of a value"),
                log_y=True,
                mark=(strength, f"{'η' if exact else 'β'} = {strength:g}"),
                height=600,
                alt=_("Line: the size of the state after the last token against the rate η")
                if exact
                else _("Line: the size of the state after the last token against the write strength"),
            )
            if not (sizes < MAX_DRAWN_SIZE).all():
                st.caption(_("Values of 10¹² or more are not drawn."))
        with right:
            _draw_state(written, f"{key}.state")
        st.markdown(tried_sentence(strength, written.eigenvalues, written.sizes / value_length, exact=exact))

    return Step(
        mechanism=_(
            "Storing a token multiplies the part of the state that lies along the token's key by a factor λ, which "
            "falls as the write strength β rises. If λ is below −1, this part grows."
        ),
        formula=r"S_i = \alpha_i \left(I - \beta_i k_i k_i^\top\right) S_{i-1} + \beta_i k_i v_i^\top,\qquad "
        r"\lambda_i = \alpha_i \left(1 - \beta_i \lVert k_i \rVert^2\right)"
        if _decays(data)
        else r"S_i = \left(I - \beta_i k_i k_i^\top\right) S_{i-1} + \beta_i k_i v_i^\top,\qquad "
        r"\lambda_i = 1 - \beta_i \lVert k_i \rVert^2",
        shapes={"S": (data.parts["keys"].shape[-1], data.qkv.v.shape[-1])},
        findings=growth_sentence(STRENGTHS, sizes, growth.eigenvalues, exact=exact),
        draw=draw,
    )


def growth_sentence(strengths: tuple[float, ...], sizes: np.ndarray, eigenvalues: np.ndarray, *, exact: bool) -> str:
    """Return the sentence about whether the state can grow without bound, and above which write strength it can.

    Args:
        strengths: the strengths tried, ascending.
        sizes: the norm of the state after the last token at each strength, divided by the mean norm of the values.
        eigenvalues: the lowest eigenvalue of a token's update of the state at each strength.
        exact: whether the setting ``keys`` is "exact", so that the strengths are rates η.
    """
    lowest, highest = strengths[0], strengths[-1]
    stable = eigenvalues >= -1 - 1e-9
    values = {"least": lowest, "most": highest, "low": number(sizes.min()), "high": number(sizes.max())}
    if exact:
        return _(
            "Here, a rate η sets the write strength β of each token. The factor λ, by which a token multiplies a "
            "part of the state, then lies between 0 and 1, so the state cannot diverge. For η from {least} to "
            "{most}, the norm of the final state is {low} to {high} times the mean norm of the values.",
            **values,
        )
    if stable.all():
        return _(
            "Each token multiplies a part of the state by a factor λ, which depends on the write strength β. Up to β "
            "= {most}, λ lies between −1 and 1, so the state cannot grow exponentially. The norm of the final state "
            "is at most {high} times the mean norm of the values.",
            **values,
        )
    first = int(np.argmin(stable))
    shown = max([first, *np.flatnonzero(sizes < MAX_DRAWN_SIZE).tolist()])  # the end of the drawn line
    # The limit is the β at which λ reaches -1. λ falls linearly with β, from at most 1 at β = 0.
    limit = np.interp(1, -np.array([1, *eigenvalues[: first + 1]]), [0, *strengths[: first + 1]])
    return _(
        "Above a write strength β of {limit:.3g}, the state can grow without bound: at β = {most}, its norm is {last} "
        "times the mean norm of the values.",
        most=strengths[shown],
        limit=limit,
        last=number(sizes[shown]) if sizes[shown] < MAX_DRAWN_SIZE else _("more than 10¹²"),
    )


def tried_sentence(strength: float, eigenvalues: np.ndarray, sizes: np.ndarray, *, exact: bool) -> str:
    """Return the sentence about the state at the selected write strength.

    Args:
        strength: β, or the rate η.
        eigenvalues: the eigenvalue of each token's update of the state.
        sizes: the norm of the state after each token, divided by the mean norm of the values.
        exact: whether the setting ``keys`` is "exact", so that the strength is the rate η.
    """
    values = {
        "strength": strength,
        "low": number(eigenvalues.min()),
        "high": number(eigenvalues.max()),
        "last": number(sizes[-1]) if np.isfinite(sizes[-1]) else _("more than 10³⁰⁸"),
    }
    if exact:
        return _(
            "With the rate η = {strength}, each token multiplies the part of the state that lies along the token's key "
            "by a factor λ between {low} and {high}. The norm of the final state is {last} times the mean norm of the "
            "values.",
            **values,
        )
    if values["low"] == values["high"]:
        return _(
            "With the write strength β = {strength}, each token multiplies the part of the state that lies along the "
            "token's key by λ = {low}. The norm of the final state is {last} times the mean norm of the values.",
            **values,
        )
    return _(
        "With the write strength β = {strength}, each token multiplies the part of the state that lies along the "
        "token's key by a factor λ between {low} and {high}. The norm of the final state is {last} times the mean norm "
        "of the values.",
        **values,
    )


def _draw_state(written: GrowthByToken, key: str) -> None:
    """Draw the state after the last token, or a caption if it is no longer finite."""
    if not np.isfinite(written.state).all():
        st.caption(
            _("The state cannot be drawn, because its numbers have overflowed (they became too large to store).")
        )
        return
    pictures.board(
        key,
        pictures.panel(
            "S", written.state, row=_("key entry"), column=_("value entry"), caption=_("the state after the last token")
        ),
        unit=_("entry"),
        diverging=True,
    )


def _by_channel(data: HeadData) -> bool:
    """Return True if each channel has its own gate, so that no single eigenvalue describes a token's update."""
    p = data.attention.params
    return data.attention.key == "kda" and isinstance(p, GateParams) and channel_gate_kind(p) == "channel"


def _decays(data: HeadData) -> bool:
    p = data.attention.params
    return isinstance(p, GateParams) and (p.gate != "constant" or p.decay < 1)
