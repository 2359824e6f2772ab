"""The reach of the stack of layers on the Masks page: the layer after which each pair of tokens is connected.

A table lists how many pairs are connected after each layer. A chart shows the tokens connected with a chosen token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.categories import layer_colours
from app.figures.reach_rows import reach_rows
from app.jobs import cached
from app.state.session import with_chosen_settings
from app.ui import chart
from app.ui.lazy import lazy_expander
from app.ui.tables import table
from app.words.i18n import _, _n, end_sentence, enumeration, escape_markdown, paragraph
from app.words.labels import label, token_options
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach, two_step_path
from attention_core.limits import current
from pages.masks.options import MasksOptions
from pages.masks.patterns import Masks, percent


@dataclass(frozen=True, eq=False)
class StackReach:
    """A stack of layers, and the pairs of tokens that it connects (its reach).

    Attributes:
        masks: patterns of the chosen variants.
        stack: the variant of each layer, without those that cannot be causal. Deeper models repeat these layers.
        not_causal: the variants that were left out.
        patterns: the pattern of each layer in ``stack``.
        reach: the reach of the deepest model that can be chosen; None if no layer is left.
    """

    masks: Masks
    stack: list[ac.Attention]
    not_causal: list[ac.Attention]
    patterns: list[Pattern]
    reach: Reach | None

    @property
    def depth(self) -> int:
        """Number of layers shown."""
        return min(MasksOptions.stack_depth.value, self.max_depth)

    @property
    def max_depth(self) -> int:
        """Largest number of layers on the slider; more layers connect no further pair. It is 0 without layers.

        If some pairs are never connected, it is at least the chosen number, so that the visitor can see this.
        """
        if self.reach is None:
            return 0
        useful = useful_layers(self.reach)
        return useful if self.reach.complete else max(useful, MasksOptions.stack_depth.value)


def useful_layers(reach: Reach) -> int:
    """Return the number of layers, among those that can be chosen, after which no further pair is connected."""
    return max(1, reach.shares.index(reach.shares[-1]))


def compute_reach(masks: Masks) -> StackReach:
    """Return the chosen stack and its reach."""
    if masks.key_labels is not None:
        return StackReach(masks, [], [], [], None)
    stack = list(map(with_chosen_settings, MasksOptions.stack.value))
    not_causal = [a for a in stack if masks.view.causal and a.variant.causal_reason is not None]
    stack = [a for a in stack if a not in not_causal]
    with cached.spinner(_("Computing which pairs the layers connect …")):
        # The reach is computed up to the slider's largest depth. Moving the slider then only selects how much is shown.
        reach = cached.reach(masks.view, tuple(stack), current().stack_layers) if stack else None
    view = masks.view
    layers = [cached.pattern(view.source, each, head=view.head, causal=view.causal) for each in stack]
    return StackReach(masks, stack, not_causal, layers, reach)


def show(stack_reach: StackReach) -> None:
    """Draw how many pairs are connected after each layer, and the reach of one token; nothing for a single token."""
    if stack_reach.masks.key_labels is not None:
        st.info(
            _(
                "The keys are those of another sequence, so layers cannot be stacked. Choose an input with one "
                "sequence to see which tokens a stack connects."
            ),
            icon=":material/layers:",
        )
    elif stack_reach.reach is None:
        st.info(_("The stack is empty. Add a layer or choose a preset."), icon=":material/layers:")
    elif len(stack_reach.masks.labels) == 1:
        st.info(_("Use at least two tokens to see how layers connect them."), icon=":material/layers:")
    if stack_reach.reach is None or len(stack_reach.masks.labels) == 1:
        return
    names = [_(a.title) for a in stack_reach.stack]
    _show_shares(stack_reach.masks, stack_reach.reach, stack_title(names))
    first, depth = stack_reach.reach.first, stack_reach.depth
    shades = layer_colours(useful_layers(stack_reach.reach))  # those of the stack's matrix
    colours = [shades[min(number, len(shades) - 1)] for number in range(depth)]
    _show_front(stack_reach, names, np.where(first > depth, -1, first), colours)
    lazy_expander(_("How this is computed"), _explain, key="reach.explained")


def _explain() -> None:
    st.markdown(
        _(
            "In each layer, query i receives information from every token it attends to. The residual "
            "connection keeps the information from earlier layers. A pair (i, j) is connected when query i can read "
            "token j, directly or through other tokens. The matrix $R_l$ contains the pairs that are connected "
            "after l layers:"
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


def left_out_note(not_causal: Sequence[ac.Attention]) -> str:
    """Return the note that lists the layers that are left out, because their variants cannot be causal."""
    titles = list(dict.fromkeys(_(a.title) for a in not_causal))
    return _n(
        "{names} cannot be causal, so it is left out of the stack.",
        "{names} cannot be causal, so they are left out of the stack.",
        n=len(titles),
        names=enumeration(titles),
    )


def stack_title(layers: Sequence[str]) -> str:
    """Return the title of a stack, such as ``Stack: Local → Atrous``."""
    return _("Stack: {layers}", layers=" → ".join(layers))


def _show_shares(masks: Masks, stack: Reach, stack_name: str) -> None:
    """Draw a table of the pairs connected after each layer, with one row for each variant and one for the stack."""
    reaches = {label(a): cached.reach(masks.view, (a,), current().stack_layers) for a in masks.sparse}
    reaches[stack_name] = stack
    layers = range(1, max(map(useful_layers, reaches.values())) + 1)
    rows = [
        {_("variant"): name}
        | {
            _n("{n} layer", "{n} layers", n=number): percent(reach.shares[number])
            if number <= useful_layers(reach)
            else ""
            for number in layers
        }
        for name, reach in reaches.items()
    ]
    skips_itself = any(not pattern.allowed.diagonal().all() for pattern in masks.sparse.values())
    st.caption(
        paragraph(
            _("Pairs connected if every layer uses the same variant, or if the layers of the stack repeat."),
            _("Each token also keeps its own information (residual connection).") if skips_itself else "",
            _("In an empty cell, the layer connects no further pair."),
        )
    )
    st.dataframe(table(rows), hide_index=True, height="content")


def _show_front(
    stack_reach: StackReach, stack: Sequence[str], all_first: np.ndarray, layers: Sequence[tuple[str, str]]
) -> None:
    masks = stack_reach.masks
    n = len(masks.labels)
    finding = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        MasksOptions.front.draw(
            index=None,
            placeholder=_("{place}  {token} (middle)", place=n // 2, token=masks.labels[n // 2]),
            width=320,
            **token_options(masks.labels),
        )
        MasksOptions.front_way.draw(width="content")
    options = MasksOptions.current()
    token = n // 2 if options.front is None else options.front
    outgoing = options.front_way == "heard"
    first = all_first[:, token] if outgoing else all_first[token]
    dark = st.context.theme.type == "dark"
    colours = ["#c2186b" if not dark else "#ff74b4", *(pair[dark] for pair in layers)]
    possible = (n - token if outgoing else token + 1) if masks.view.causal else None
    counts = connected_counts(stack, masks.labels[token], first, len(layers), outgoing=outgoing, possible=possible)
    first_layer, second_layer = (stack_reach.patterns[i % len(stack)].allowed for i in (0, 1))
    path = None if outgoing or len(layers) == 1 else two_step_path(first_layer, second_layer, token)
    finding.markdown(paragraph(counts, path_text(*(masks.labels[i] for i in (token, *path))) if path else ""))
    chart.show(
        reach_rows(first, masks.labels, colours, x_title=_("token"), y_title=_("after layer")),
        key="reach.front",
        name="front",
        alt=_("One row per layer, one column per token: tokens that can read {token} after this layer", token=token)
        if outgoing
        else _("One row per layer, one column per token: tokens that {token} can read after this layer", token=token),
    )


def path_text(token: str, key: str, middle: str) -> str:
    """Return the sentence about how a token reads a key through another token in two layers, as Markdown."""
    return _(
        "For example, “{middle}” reads “{key}” in layer 1, and “{token}” reads “{middle}” in layer 2.",
        token=escape_markdown(token),
        key=escape_markdown(key),
        middle=escape_markdown(middle),
    )


def connected_counts(
    stack: Sequence[str], token: str, first: np.ndarray, depth: int, *, outgoing: bool, possible: int | None = None
) -> str:
    """Return the sentence about how many tokens one token is connected with after each layer, as Markdown.

    It is empty if the token can be connected only with itself.

    Args:
        stack: names of the stack's layers.
        token: label of the token.
        first: the first layer that connects it with each token, ``[n]``; -1 if not connected.
        depth: number of layers.
        outgoing: whether to count the tokens that can read this token, instead of the tokens that it can read.
        possible: number of tokens that the causal mask allows; None without this mask.
    """
    total = possible or len(first)
    if total == 1:
        return ""
    counts = [int(((first >= 0) & (first <= number)).sum()) for number in range(1, depth + 1)]
    last = counts.index(counts[-1]) + 1  # Further layers connect no further token.
    tokens = (
        _("{total:,} tokens that the causal mask allows", total=total)
        if possible
        else _("{total:,} tokens", total=total)
    )
    share = (
        _("all {tokens}", tokens=tokens)
        if counts[0] == total
        else _("{n:,} of the {tokens}", n=counts[0], tokens=tokens)
    )
    values = {"stack": " → ".join(stack), "token": escape_markdown(token), "share": share}
    sentence = (
        _("In the stack {stack}, {share} can read “{token}” after 1 layer", **values)
        if outgoing
        else _("In the stack {stack}, “{token}” can read {share} after 1 layer", **values)
    )
    later = [
        _("all {total:,} after {layers}", total=total, layers=layers)
        if count == total
        else _("{n:,} after {layers}", n=count, layers=layers)
        for layers, count in enumerate(counts[1:last], 2)
    ]
    if last < depth and counts[-1] < total:
        later.append(_("still {n:,} after {layers}", n=counts[-1], layers=depth))
    return end_sentence(enumeration([sentence, *later]))
