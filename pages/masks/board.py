"""The matrices of the Masks page: the query-key pairs that each mask allows or that a stack of layers connects.

A stack is a sequence of layers, each with a variant's mask. It connects a pair if information can pass from the key to
the query through its layers.
"""

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.categories import layer_colours
from app.matrix_board import Category, Knob, Panel, matrix_board
from app.matrix_board.pair_kinds import PairKinds, hide_future
from app.ui import export_metadata, variant_picker
from app.words.i18n import N_, _, _n
from app.words.labels import label
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from attention_core.limits import current
from pages.masks.options import MasksOptions
from pages.masks.patterns import Masks, caption, cost_note, layers_text, percent, rule_text, unread_tokens
from pages.masks.reach import StackReach, left_out_note, stack_title, useful_layers
from pages.masks.stack import PANEL_KEY

MANY_PANELS = 4
"""Smallest number of other panels with which the stack's panel is narrow, so that it has a short title."""
LAYERS_HEADING = N_("First connected by")
"""Heading of the layers in the legend of the board."""


def show(stack_reach: StackReach) -> None:
    """Draw the matrices of the masks, coloured by the rule that allows each pair, and the matrix of the stack.

    A click selects the token whose reach is shown below.
    """
    masks = stack_reach.masks
    if stack_reach.not_causal:
        st.caption(f":material/block: {left_out_note(stack_reach.not_causal)}")
    if not masks.sparse:
        st.info(
            _(
                "No variant shown uses a mask, so there is no pattern to draw. Choose “All masks”, or add a sparse "
                "variant."
            )
            if masks.key_labels is None
            else _(
                "There is no pattern to draw, because the selected variants that accept keys from another sequence "
                "use no mask. Add Top-k, which accepts such keys and attends only to some of them."
            ),
            icon=":material/grid_on:",
        )
    kinds = PairKinds(pattern.primitives for pattern in masks.sparse.values())
    panels = [_panel(masks, attention, pattern, kinds) for attention, pattern in masks.sparse.items()]
    categories = kinds.categories
    if stack_reach.reach is not None:
        layers = [_(a.title) for a in stack_reach.stack]
        title = stack_title(layers) if len(panels) < MANY_PANELS or len(layers) == 2 else _("Stack")
        panels.append(_stack_panel(stack_reach, stack_reach.reach, title, offset=len(categories)))
        categories += _layer_categories(useful_layers(stack_reach.reach))
    if panels:
        matrix_board(
            panels,
            labels=masks.labels,
            col_labels=masks.key_labels,
            key="masks.board",
            text=export_metadata.own_text(),
            categories=categories,
            zero=_("not allowed") if masks.sparse else None,
            upcoming=_("not connected"),
            masked=_("future key"),
            frame=stack_reach.depth,
            last_frame=stack_reach.max_depth,
            on_turn=_set_budget,
            on_open=variant_picker.toggle_settings,
            on_frame=MasksOptions.stack_depth.set,
            unit=_("Allowed in one layer by"),
            pinned=MasksOptions.front.value,
            on_pin=show_keys_of,
            file_name="masks",
        )


def _panel(masks: Masks, attention: ac.Attention, pattern: Pattern, kinds: PairKinds) -> Panel:
    knob = variant_picker.board_knob(attention, len(masks.labels))
    lines = [f"{rule_text(pattern)} · {caption(pattern, all_heads=masks.view.head is None)}"]
    if masks.key_labels is None:
        lines.insert(0, layers_text(pattern.diameter, unread_tokens(pattern, causal=masks.view.causal)))
    return Panel(
        attention.key,
        label(attention) if knob is None else _(attention.title),
        "\n".join(lines),
        hide_future(kinds.codes(pattern.primitives), causal=masks.view.causal),
        knob=knob,
        details=cost_note([pattern], pattern.diameter) if masks.key_labels is None else "",
        tooltip=_(attention.variant.summary),
        settings_label=_("Settings of {name}", name=_(attention.title)),
    )


def _set_budget(key: str, value: object) -> None:
    """Store the value of a panel's slider: a variant's budget or the number of layers. Invalid values are ignored."""
    if key != PANEL_KEY:
        variant_picker.set_budget(key, value)
    elif isinstance(value, int) and 1 <= value <= current().stack_layers:
        MasksOptions.stack_depth.set(value)


def _stack_panel(stack_reach: StackReach, reach: Reach, title: str, *, offset: int) -> Panel:
    """Return the panel of the stack, coloured by the layer that first connects each pair.

    Args:
        stack_reach: the stack.
        reach: its reach.
        title: title of the panel.
        offset: the number of colours (categories) of the other panels, which come first in the legend.
    """
    depth, layers = stack_reach.depth, useful_layers(reach)
    stops = list(range(1, stack_reach.max_depth + 1))
    frames = [connected_after(reach, number) for number in stops]
    codes = np.select([reach.first < 0, reach.first == 0], [layers + 2, layers + 1], reach.first) + offset
    return Panel(
        PANEL_KEY,
        title,
        frames[depth - 1],
        hide_future(codes.astype(np.float32), causal=stack_reach.masks.view.causal),
        frames=frames,
        knob=Knob(_("layers"), stops, depth) if len(stops) > 1 else None,
        details=cost_note(stack_reach.patterns, reach.complete),
        settings_label=_("Edit the stack"),
        group=_(LAYERS_HEADING),
    )


def connected_after(reach: Reach, depth: int) -> str:
    """Return the caption of the stack's panel: the share of pairs that are connected after ``depth`` layers.

    If all are connected, it has the number of layers needed.
    """
    if reach.complete is not None and depth >= reach.complete:
        return layers_text(reach.complete)
    share = percent(reach.shares[depth])
    return _n(
        "{share} of pairs connected after {n} layer",
        "{share} of pairs connected after {n} layers",
        n=depth,
        share=share,
    )


def _layer_categories(count: int) -> list[Category]:
    """Return the stack's categories (legend entries): layers 1 to ``count``, the token itself, and no layer.

    A token is connected with itself before the first layer. These pairs have the colour of layer 1.
    """
    group, colours = _(LAYERS_HEADING), layer_colours(count)
    layers = [
        Category(_("layer {number}", number=number), *colour, group=group, frame=number)
        for number, colour in enumerate(colours, 1)
    ]
    itself = Category(_("the token itself"), *colours[0], listed=False, group=group)
    return [*layers, itself, Category(_("not connected"), "", "", group=group)]


def show_keys_of(token: int | None) -> None:
    """Show below the matrices which tokens the pinned query can read, as in its row; None removes the pin."""
    MasksOptions.front.set(token)
    if token is not None:
        MasksOptions.front_way.set("hears")
