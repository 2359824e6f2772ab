"""Story of DeltaNet: overlapping keys, erasing before writing, and the write strength at which the state explodes."""

import numpy as np
import streamlit as st

from app.jobs import cached
from app.words.i18n import N_, _, paragraph
from attention_core.analysis.low_rank.factors import lengths
from attention_core.analysis.state.delta_state import Written
from attention_core.formatting import number
from attention_core.ops.delta.gates import GateParams, each
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later

STRENGTHS = tuple(i / 10 for i in range(1, 31))
"""Write strengths tried on the head's own keys; some exceed the variant's limit, to show why the limit exists."""
TALLEST = 1e12
"""States larger than this many mean value lengths are not drawn."""


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: key overlap, the inverse, what is written, state growth, comparison with the reference."""
    sums = seen.weights.sum(-1)
    ending = _(
        "{share:.0%} of its weights are negative, and a row sums to {low:.2g} … {high:.2g}.",
        share=(seen.weights[seen.visible] < 0).mean(),
        low=sums.min(),
        high=sums.max(),
    )
    growth = () if _by_channel(seen) else (_growth(seen),)
    return _overlaps(seen), _inverse(seen), _written(seen), *growth, beside_reference(seen, ending)


def _overlaps(seen: Seen) -> Step:
    found = seen.parts["overlaps"]
    before = np.tri(len(found), k=-1, dtype=bool)
    return Step(
        title=_("Keys that overlap"),
        formula=r"\beta_i \sum_c \Gamma_{ijc}\, k_{ic}\, k_{jc},\quad j < i"
        if _by_channel(seen)
        else r"\beta_i\, \Gamma_{ij}\, k_i^\top k_j,\quad j < i"
        if _decays(seen)
        else r"\beta_i\, k_i^\top k_j,\quad j < i",
        shapes={"k": seen.parts["keys"].shape, r"K K^\top": found.shape},
        sentence=overlap_sentence(found[before]),
        draw=lambda key: pictures.board(
            key,
            pictures.earlier(seen, _("What a key reads"), found, row=_("token that writes")),
            unit=_("share read"),
            diverging=True,
        ),
    )


def overlap_sentence(found: np.ndarray) -> str:
    """Return the sentence about how much of earlier tokens' writes a key reads.

    Args:
        found: the overlap of every two tokens; empty if there is only one token.
    """
    if not found.size:
        return _("There is one token only: its key finds nothing written.")
    return _(
        "Before a token writes, its key reads what is there: of what an earlier token wrote it takes back {mean:.0%} "
        "on average, without the sign, and {most:.0%} at most. Linear attention adds to that whatever comes.",
        mean=abs(found).mean(),
        most=abs(found).max(),
    )


def _inverse(seen: Seen) -> Step:
    found = seen.parts["inverse"]
    low, high = float(found.min()), float(found.max())
    unit = seen.setting("keys") == "unit" and seen.setting("strength") <= 1
    return Step(
        title=_("Who corrects whom"),
        formula=r"T = \left(I + \operatorname{diag}(\beta)\,(K K^\top \odot \Gamma^-)\right)^{-1}"
        if _decays(seen)
        else r"T = \left(I + \operatorname{diag}(\beta)\,(K K^\top \odot M^-)\right)^{-1}",
        shapes={"T": found.shape},
        sentence=paragraph(
            _(
                "Row i says how much of every earlier value token i takes back when it writes its own, for {n} tokens "
                "at once by forward substitution. The entries lie between {low} and {high}.",
                n=len(found),
                low=number(low),
                high=number(high),
            ),
            _("Keys of length one with a strength up to 1 keep each of them between −1 and 1.") if unit else "",
        ),
        draw=lambda key: pictures.board(
            key,
            pictures.earlier(seen, "T", found, row=_("token that writes"), with_itself=True),
            unit=_("entry"),
            diverging=True,
        ),
    )


def _written(seen: Seen) -> Step:
    written = lengths(seen.parts["written"])
    values = lengths(seen.qkv.v[seen.head].numpy())
    share = written / np.where(values == 0, 1.0, values)

    def draw(key: str) -> None:
        pictures.bars(
            {"‖u‖ / ‖v‖": share},
            seen.labels,
            key=key,
            x_title=_("token"),
            y_title="‖u‖ / ‖v‖",
            alt=_("Bars: how long what each token writes is beside its value"),
        )

    return Step(
        title=_("Erase, then write"),
        formula=r"u_i = \beta_i \left(v_i - S_{i-1}^\top k_i\right),\qquad S_i = S_{i-1} + k_i u_i^\top"
        if not _decays(seen)
        else r"u_i = \beta_i \left(v_i - (D_i S_{i-1})^\top k_i\right),\qquad S_i = D_i S_{i-1} + k_i u_i^\top,\qquad "
        r"D_i = \operatorname{diag}(\alpha_i)"
        if _by_channel(seen)
        else r"u_i = \beta_i \left(v_i - \alpha_i S_{i-1}^\top k_i\right),\qquad S_i = \alpha_i S_{i-1} + k_i u_i^\top",
        shapes={"U": seen.parts["written"].shape, "S": (seen.parts["keys"].shape[-1], seen.qkv.v.shape[-1])},
        sentence=_(
            "What a token writes is {middle:.0%} as long as its value in the median: least for “{least}” ({low:.0%}), "
            "most for “{most}” ({high:.0%}).",
            middle=np.median(share),
            least=seen.token(share.argmin()),
            low=share.min(),
            most=seen.token(share.argmax()),
            high=share.max(),
        ),
        draw=draw,
    )


@later(N_("How strongly to write"))
def _growth(seen: Seen) -> Step:
    found = cached.delta_growth(seen.source, seen.attention, head=seen.head, strengths=STRENGTHS)
    usual = lengths(seen.qkv.v[seen.head].numpy()).mean() or 1.0
    sizes = found.sizes / usual
    exact = seen.setting("keys") == "exact"

    def draw(key: str) -> None:
        tenths: int = InsideOptions.write.draw(
            label=_("Rate η") if exact else _("Strength β"),
            options=range(1, 1 + len(STRENGTHS)),
            format_func=lambda tenths: f"{tenths / 10:.1f}",
        )
        tried = STRENGTHS[tenths - 1]
        here = cached.delta_written(seen.source, seen.attention, head=seen.head, strength=tried)
        st.markdown(tried_sentence(tried, here.eigenvalues, here.sizes / usual, exact=exact))
        pictures.lines(
            [Curve("‖S‖", list(STRENGTHS), [float(y) if y < TALLEST else None for y in sizes], colour=0)],
            key=key,
            x_title=_("rate η") if exact else _("strength β"),
            y_title=_("‖S‖ after the last token, over the mean ‖v‖"),
            log_y=True,
            mark=tried,
            alt=_("Line: how large the state is after the last token, against how strongly tokens write"),
        )
        _draw_state(here, tried, f"{key}.state")

    return Step(
        formula=r"S_i = \alpha_i \left(I - \beta_i k_i k_i^\top\right) S_{i-1} + \beta_i k_i v_i^\top,\qquad "
        r"\lambda_i = \alpha_i \left(1 - \beta_i \lVert k_i \rVert^2\right)"
        if _decays(seen)
        else r"S_i = \left(I - \beta_i k_i k_i^\top\right) S_{i-1} + \beta_i k_i v_i^\top,\qquad "
        r"\lambda_i = 1 - \beta_i \lVert k_i \rVert^2",
        shapes={"S": (seen.parts["keys"].shape[-1], seen.qkv.v.shape[-1])},
        sentence=growth_sentence(STRENGTHS, sizes, found.eigenvalues, exact=exact),
        draw=draw,
    )


def growth_sentence(strengths: tuple[float, ...], sizes: np.ndarray, eigenvalues: np.ndarray, *, exact: bool) -> str:
    """Return the sentence about the write strength from which the state can explode.

    Args:
        strengths: the strengths tried, ascending.
        sizes: the size of the state after the last token, in mean value lengths.
        eigenvalues: the lowest eigenvalue of a step at each strength.
        exact: whether the exact step is used.
    """
    least, most = strengths[0], strengths[-1]
    stable = eigenvalues >= -1 - 1e-9
    values = {"least": least, "most": most, "low": number(sizes.min()), "high": number(sizes[stable].max())}
    if exact:
        return _(
            "The exact step multiplies the part of the state along its key by a number between 0 and 1 at every rate: "
            "from η = {least} to {most} the state stays between {low} and {high} times a value's mean length.",
            **values,
        )
    if stable.all():
        return _(
            "A step multiplies the part of the state along its key by λ, which stays above −1 up to β = {most}, as the "
            "state fades: it cannot grow without end. On this head it is at most {high} times a value's mean length.",
            **values,
        )
    return _(
        "A step multiplies the part of the state along its key by λ. With keys of length one that is below −1 from "
        "β = {first} on, and the state may grow without end. On this head it is at most {high} times a value's mean "
        "length before, and {last} times at β = {most}.",
        **values,
        first=strengths[int(np.argmin(stable))],
        last=number(sizes[-1]) if np.isfinite(sizes[-1]) else _("beyond every number, over 10³⁰⁸"),
    )


def tried_sentence(strength: float, eigenvalues: np.ndarray, sizes: np.ndarray, *, exact: bool) -> str:
    """Return the sentence about the state at the selected write strength.

    Args:
        strength: β, or the rate η.
        eigenvalues: the eigenvalue of each token's step.
        sizes: the size of the state after each token, in mean value lengths.
        exact: whether the exact step is used.
    """
    values = {
        "strength": strength,
        "low": number(eigenvalues.min()),
        "high": number(eigenvalues.max()),
        "last": number(sizes[-1]) if np.isfinite(sizes[-1]) else _("beyond every number, over 10³⁰⁸"),
    }
    if exact:
        return _(
            "At η = {strength} λ lies between {low} and {high}, and the last state is {last} times a value's mean "
            "length.",
            **values,
        )
    if values["low"] == values["high"]:
        return _("At β = {strength} λ is {low}, and the last state is {last} times a value's mean length.", **values)
    return _(
        "At β = {strength} λ lies between {low} and {high}, and the last state is {last} times a value's mean length.",
        **values,
    )


def _draw_state(here: Written, strength: float, key: str) -> None:
    """Draw the state after the last token, or a caption if it is no longer finite."""
    if not np.isfinite(here.state).all():
        st.caption(_("The state has left the numbers that there are."))
        return
    width, height = here.state.shape
    pictures.board(
        key,
        pictures.panel(
            "S",
            here.state,
            list(map(str, range(width))),
            list(map(str, range(height))),
            row=_("key entry"),
            column=_("value entry"),
            caption=_("after the last token, at {strength}", strength=strength),
        ),
        unit=_("entry"),
        diverging=True,
    )


def _by_channel(seen: Seen) -> bool:
    """Return True if each channel has its own gate, in which case no single eigenvalue describes a step."""
    p = seen.attention.params
    return seen.attention.key == "kda" and isinstance(p, GateParams) and each(p) == "each"


def _decays(seen: Seen) -> bool:
    p = seen.attention.params
    return isinstance(p, GateParams) and (p.gate != "constant" or p.decay < 1)
