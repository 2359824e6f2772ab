"""How far information travels through a stack of layers: the layer that first connects each pair of tokens.

A chart shows how many tokens one token can reach after each layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.categories import steps
from app.figures.front import front
from app.figures.lines.curves import Curve, curves
from app.figures.theme import GREY
from app.jobs import cached
from app.state.session import with_chosen_settings
from app.ui import chart, palette
from app.ui.lazy import lazy_expander
from app.words.i18n import _, _n, enumeration, escape_markdown
from app.words.labels import label, tokens
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from attention_core.limits import current
from pages.masks.options import MasksOptions
from pages.masks.patterns import Found


@dataclass(frozen=True, eq=False)
class StackReach:
    """A stack of patterns and its reach.

    Attributes:
        found: patterns of the chosen variants.
        stack: layers of one round, without those that cannot be causal.
        refused: layers that were left out.
        patterns: pattern of each layer of the stack.
        whole: reach of the deepest possible stack, of which the page shows some layers; None if no layer is left.
    """

    found: Found
    stack: list[ac.Attention]
    refused: list[ac.Attention]
    patterns: list[Pattern]
    whole: Reach | None

    @property
    def depth(self) -> int:
        """Number of layers shown."""
        return MasksOptions.stack_depth.value

    @property
    def last(self) -> int:
        """Number of layers after which nothing new is connected, at most the number that the slider allows; or 0."""
        most = current().stack_layers
        return min(most, self.whole.complete or most) if self.whole else 0


def compute_reach(found: Found) -> StackReach:
    """Return the chosen stack and its reach."""
    if found.key_labels is not None:
        return StackReach(found, [], [], [], None)
    stack = list(map(with_chosen_settings, MasksOptions.stack.value))
    refused = [a for a in stack if found.view.causal and a.variant.causal_reason is not None]
    stack = [a for a in stack if a not in refused]
    with cached.spinner(_("Computing the reach of the stack …")):
        # This computes the reach up to the largest depth of the slider. A move of the slider then only selects how much
        # of the result is shown.
        whole = cached.reach(found.view, tuple(stack), current().stack_layers) if stack else None
    view = found.view
    layers = [cached.pattern(view.source, each, head=view.head, causal=view.causal) for each in stack]
    return StackReach(found, stack, refused, layers, whole)


def show(followed: StackReach) -> None:
    """Draw the curves of connected pairs, and the reach of one token."""
    if followed.found.key_labels is not None:
        st.info(
            _(
                "The keys are those of another sequence, so layers cannot be stacked. Choose an input with one "
                "sequence to see which tokens a stack reaches."
            ),
            icon=":material/layers:",
        )
    if followed.whole is None:
        return
    _curves(followed.found, followed.whole)
    first = followed.whole.first
    _front(followed.found, np.where(first > followed.depth, -1, first), followed.depth)
    lazy_expander(_("How reach is computed"), _explained, key="reach.explained")


def _explained() -> None:
    st.markdown(
        _(
            "In each layer, query i receives information from every token it attends to. The residual "
            "connection keeps the information from earlier layers. A pair (i, j) is connected when information "
            "from token j has reached query i. The matrix $R_l$ contains the pairs that are connected after l "
            "layers:"
        )
    )
    st.latex(r"R_0 = I, \qquad R_l = (M_l \lor I)\, R_{l-1}")
    st.markdown(
        _(
            "Here, $M_l$ is the boolean pattern of layer l on this input, I is the identity matrix, and the products "
            "are boolean. For the average of heads, $M_l$ allows a pair (i, j) if at least one head allows it. The "
            "layers of the stack repeat until every pair is connected, or until a repetition connects no new pair. "
            "If a pair is connected, information can flow from token j to query i. How much information flows "
            "depends on the attention weights."
        )
    )


def left_out(refused: Sequence[ac.Attention]) -> str:
    """Return which layers of a stack are left out while causal is on."""
    titles = list(dict.fromkeys(_(a.title) for a in refused))
    return _n(
        "{names} cannot be causal, so it is left out of the stack.",
        "{names} cannot be causal, so they are left out of the stack.",
        n=len(titles),
        names=enumeration(titles),
    )


def _curves(found: Found, stack: Reach) -> None:
    alone = {a: cached.reach(found.view, (a,), current().stack_layers) for a in found.drawn}
    layers = list(range(len(stack.shares)))
    lines = [
        *(Curve(label(a), layers, [100 * s for s in r.shares], colour=palette.place(a.key)) for a, r in alone.items()),
        Curve(_("stack"), layers, [100 * s for s in stack.shares], colour=GREY, dash="dash"),
    ]
    chart.show(
        curves(lines, x_title=_("layers"), y_title=_("pairs connected, %"), form=".1f", height=360),
        key="reach.curves",
        name="reach",
        alt=_("Share of token pairs where one token can influence the other, by number of layers"),
    )


def _front(found: Found, all_first: np.ndarray, depth: int) -> None:
    n = len(found.labels)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        MasksOptions.front.draw(
            index=None,
            placeholder=_("{place}  {token} (middle)", place=n // 2, token=found.labels[n // 2]),
            width=320,
            **tokens(found.labels),
        )
        MasksOptions.front_way.draw(width="content")
        chart.choose_format()
    options = MasksOptions.now()
    token = n // 2 if options.front is None else options.front
    heard = options.front_way == "heard"
    first = all_first[:, token] if heard else all_first[token]
    dark = st.context.theme.type == "dark"
    colours = ["#c2186b" if not dark else "#ff74b4", *(pair[dark] for pair in steps(depth))]
    st.markdown(connected_counts(found.labels[token], first, depth, heard=heard))
    chart.show(
        front(
            first,
            found.labels,
            colours,
            x_title=_("token"),
            y_title=_("after layer"),
            play=_("Play"),
            pause=_("Pause"),
            after=_("after layer"),
        ),
        key="reach.front",
        name="front",
        alt=_("One row per layer, one column per token: tokens that token {token} reaches by this layer", token=token)
        if heard
        else _("One row per layer, one column per token: tokens that reach token {token} by this layer", token=token),
    )


def connected_counts(token: str, first: np.ndarray, depth: int, *, heard: bool) -> str:
    """Return how many tokens one token is connected with, layer by layer, as Markdown.

    Args:
        token: label of the token.
        first: first layer that connects it with each token, ``[n]``; -1 if none does.
        depth: number of layers.
        heard: whether to count the tokens that hold information of this token, instead of the reverse.
    """
    counts = enumeration(f"{int(((first >= 0) & (first <= number)).sum())}" for number in range(depth + 1))
    values = {"token": escape_markdown(token), "counts": counts, "n": len(first)}
    if heard:
        return _("Number of tokens that “{token}” reaches after 0, 1, … layers: {counts} of {n}.", **values)
    return _("Number of tokens that reach “{token}” after 0, 1, … layers: {counts} of {n}.", **values)
