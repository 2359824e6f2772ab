"""The matrices of the Masks page: the query-key pairs that each mask allows or that a stack of layers connects."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.categories import steps
from app.matrix_board import Category, Knob, Panel, matrix_board
from app.matrix_board.pair_kinds import Kinds, hide_future
from app.ui import variant_picker
from app.words.i18n import N_, _, _n, enumeration
from app.words.labels import label
from attention_core.analysis.masks.pattern import Pattern, has_pattern
from attention_core.analysis.masks.stack import Reach
from attention_core.limits import current
from pages.masks.options import MasksOptions
from pages.masks.patterns import Found, caption, cost, cost_note, percent, rule
from pages.masks.reach import StackReach, left_out
from pages.masks.stack import PANEL

FIRST_LINE = 3
"""Patterns before the panel of the stack, so that a wide board shows it in its first line."""
LAYERS = N_("First connected by")
"""Heading of the categories of the stack's panel."""


def show(followed: StackReach) -> None:
    """Draw the patterns, coloured by what allows each pair, and the layer of the stack that first connects each pair.

    A click selects the token whose reach is shown below.
    """
    found = followed.found
    if followed.refused:
        st.caption(f":material/block: {left_out(followed.refused)}")
    if not found.drawn:
        st.info(
            _(
                "The selected variants use no mask, so there is no pattern to draw. Choose “All patterns”, or "
                "add a sparse variant."
            )
            if found.key_labels is None
            else _(
                "There is no pattern to draw, because the selected variants that accept keys from another sequence "
                "use no mask. Add Top-k, which accepts such keys and attends only to some of them."
            ),
            icon=":material/grid_on:",
        )
    if followed.whole is None and found.key_labels is None:
        st.info(_("The stack is empty. Add a layer or choose a preset."), icon=":material/layers:")
    full = [label(a) for a in found.patterns if not has_pattern(a.variant)]
    kinds = Kinds(pattern.primitives for pattern in found.drawn.values())
    panels = [_panel(found, attention, pattern, kinds) for attention, pattern in found.drawn.items()]
    categories = kinds.categories
    if followed.whole is not None:
        panels.insert(FIRST_LINE, _reach(followed, followed.whole, before=len(categories)))
        categories += _layers(followed.last)
    if panels:
        matrix_board(
            panels,
            labels=found.labels,
            col_labels=found.key_labels,
            key="masks.board",
            categories=categories,
            none=_("not allowed") if found.drawn else None,
            later=_("not connected"),
            masked=_("future key"),
            frame=min(followed.depth, followed.last),
            last_frame=followed.last,
            on_turn=_turn,
            on_open=variant_picker.toggle_settings,
            on_frame=MasksOptions.stack_depth.set,
            unit=_("Allowed by"),
            note=_n(
                "{names} is not drawn, because it allows all pairs.",
                "{names} are not drawn, because they allow all pairs.",
                n=len(full),
                names=enumeration(full),
            )
            if full
            else "",
            pinned=MasksOptions.front.value,
            on_pin=MasksOptions.front.set,
            file_name="masks",
        )


def _panel(found: Found, attention: ac.Attention, pattern: Pattern, kinds: Kinds) -> Panel:
    knob = variant_picker.board_knob(attention, len(found.labels))
    lines = [rule(pattern), caption(pattern, every_head=found.view.head is None)]
    if found.key_labels is None:
        lines.append(cost([pattern], pattern.diameter))
    return Panel(
        attention.key,
        label(attention) if knob is None else _(attention.title),
        "\n".join(lines),
        hide_future(kinds.codes(pattern.primitives), causal=found.view.causal),
        knob=knob,
        details=cost_note() if found.key_labels is None else "",
        about=_(attention.variant.summary),
        opens=_("Settings of {name}", name=_(attention.title)),
    )


def _turn(key: str, value: object, held: bool) -> None:
    """Set the budget of a variant, or the number of layers of the stack; ignore a value that is not valid."""
    if key != PANEL:
        variant_picker.set_budget(key, value)
    elif isinstance(value, int) and 1 <= value <= current().stack_layers:
        MasksOptions.stack_depth.set(value)


def _reach(followed: StackReach, whole: Reach, *, before: int) -> Panel:
    """Return the panel of the stack, whose categories follow after ``before`` others."""
    last, depth = followed.last, followed.depth
    stops = sorted({*range(1, last + 1), depth})
    missing = (whole.first < 0) | (whole.first > last)
    frames = [connected_after(whole, number, followed.patterns) for number in range(1, stops[-1] + 1)]
    codes = np.select([missing, whole.first == 0], [last + 2, last + 1], whole.first) + before
    return Panel(
        PANEL,
        _("Stack: {layers}", layers=" → ".join(_(a.title) for a in followed.stack)),
        frames[depth - 1],
        hide_future(codes.astype(np.float32), causal=followed.found.view.causal),
        frames=frames[:last],
        knob=Knob(_("layers"), stops, depth) if len(stops) > 1 else None,
        details=cost_note(),
        opens=_("Edit the stack"),
        group=_(LAYERS),
    )


def connected_after(whole: Reach, depth: int, layers: Sequence[Pattern]) -> str:
    """Return the caption of the stack's panel: the share of pairs that layers connect, or the cost of all pairs."""
    if whole.complete is not None and depth >= whole.complete:
        return cost(layers, whole.complete)
    share = percent(whole.shares[depth])
    return _n(
        "{share} of pairs connected after {n} layer",
        "{share} of pairs connected after {n} layers",
        n=depth,
        share=share,
    )


def _layers(last: int) -> list[Category]:
    """Return the categories of the panel of the stack: layers 1 to ``last``, the token itself, and no layer.

    A token is connected with itself before the first layer. The panel shows these pairs like those of layer 1.
    """
    group, colours = _(LAYERS), steps(last)
    layers = [
        Category(_("layer {number}", number=number), *colour, group=group, frame=number)
        for number, colour in enumerate(colours, 1)
    ]
    itself = Category(_("the token itself"), *colours[0], listed=False, group=group)
    return [*layers, itself, Category(_("not connected"), "", "", group=group)]
