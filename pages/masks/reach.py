"""How far information travels through a stack of layers: the layer that first connects each pair of tokens.

A chart shows how many tokens one token can reach after each layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, gcd

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
from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import label, tokens
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from attention_core.limits import current
from pages.masks.options import MasksOptions
from pages.masks.patterns import Found, is_window, multiples, spent


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


def summary(followed: StackReach) -> str:
    """Return how many pairs a stack of layers connects, why, and what this means; empty for an empty stack."""
    if followed.whole is None:
        return ""
    titles = [_(a.title) for a in followed.stack]
    return paragraph(
        connected(titles, followed.whole, followed.depth, followed.patterns),
        reason(
            list(zip(titles, followed.patterns, strict=True)), followed.whole.complete, n=len(followed.found.labels)
        ),
    )


def show(followed: StackReach) -> None:
    """Draw the curves of connected pairs, and the reach of one token."""
    if followed.found.key_labels is not None:
        st.info(
            _(
                "The keys are those of another sequence, so layers cannot be stacked and there is no reach. Choose "
                "another input to see the reach of a stack."
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


def connected(stack: Sequence[str], reached: Reach, depth: int, layers: Sequence[Pattern]) -> str:
    """Return the share of pairs that a stack connects at a depth, and the depth and cost at which it connects all.

    Args:
        stack: name of each layer of one round.
        reached: reach of the stack.
        depth: number of layers shown.
        layers: pattern of each layer of one round.
    """
    words = " → ".join(stack)
    cost = 0 if reached.complete is None else spent(layers, reached.complete)[1]
    if reached.complete is not None and depth >= reached.complete:
        return _n(
            "**The stack {stack} connects all pairs after {n} layer, at {cost:.0%} of one softmax layer's pairs.**",
            "**The stack {stack} connects all pairs after {n} layers, at {cost:.0%} of one softmax layer's pairs.**",
            n=reached.complete,
            stack=words,
            cost=cost,
        )
    return paragraph(
        _n(
            "**After {n} layer, the stack {stack} connects {share} of pairs.**",
            "**After {n} layers, the stack {stack} connects {share} of pairs.**",
            n=depth,
            stack=words,
            share=percent(reached.shares[depth]),
        ),
        _(
            "The stack connects all pairs after {n} layers, at {cost:.0%} of one softmax layer's pairs.",
            n=reached.complete,
            cost=cost,
        )
        if reached.complete is not None
        else "",
    )


def reason(layers: Sequence[tuple[str, Pattern]], complete: int | None, *, n: int) -> str:
    """Return why a stack connects all pairs or never does; empty if the patterns' distances do not explain it.

    Args:
        layers: name and pattern of each layer of one round.
        complete: depth at which the repeated stack connects all pairs; None if it never does.
        n: number of tokens.
    """
    common, widest = gcd(*(pattern.step for _name, pattern in layers)), max(pattern.step for _name, pattern in layers)
    if complete is None and common == 0:
        return _("The stack never connects all pairs, because each token attends only to itself.")
    if complete is None and common > 1:
        return _(
            "The stack never connects all pairs, because information moves only over distances that are multiples of "
            "{step} tokens.",
            step=common,
        )
    if complete is None:
        return _(
            "The stack never connects all pairs, however often it is repeated, because information never leaves some "
            "groups of tokens."
        )
    if widest > 1:
        others = dict.fromkeys(name for name, pattern in layers if pattern.step % widest)
        if len(layers) == 2 and len(others) == 1 and complete <= 2:
            # Two layers connect all pairs, so each distance is the sum of a distance, or 0, of each pattern.
            strided = next(name for name, pattern in layers if pattern.step == widest)
            other, between = next((name, pattern) for name, pattern in layers if pattern.step % widest)
            fields = {"strided": strided, "distances": multiples(widest, n - 1), "other": other}
            if is_window(between):
                return _(
                    "**{strided}** reaches keys {distances} tokens away, and **{other}** adds the distances from 0 to "
                    "{most}.",
                    most=between.farthest,
                    **fields,
                )
            return _(
                "**{strided}** reaches keys {distances} tokens away, and **{other}** adds the distances in between.",
                **fields,
            )
        return _n(
            "The stack connects all pairs because **{names}** also moves information over distances that are not "
            "multiples of {step} tokens.",
            "The stack connects all pairs because **{names}** also move information over distances that are not "
            "multiples of {step} tokens.",
            n=len(others),
            names=enumeration(others),
            step=widest,
        )
    farthest = max(pattern.farthest for _name, pattern in layers)
    if complete > 1 and complete == ceil((n - 1) / farthest):
        return _(
            "Fewer layers cannot connect the first and the last of the {n} tokens, because information moves at most "
            "{farthest} tokens per layer.",
            n=n,
            farthest=farthest,
        )
    return ""


def percent(share: float) -> str:
    """Return a share of pairs in per cent; only all pairs are 100%."""
    if share == 1:
        return "100%"
    words = f"{share:.1%}"
    return f"{share:.3%}" if words == "100.0%" else words


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
        alt=_("One row per layer, one column per token: the tokens connected with token {token}", token=token),
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
