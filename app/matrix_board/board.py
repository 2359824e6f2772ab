"""A board: the matrices of several attention variants side by side, with linked crosshair and zoom.

It shows exact values on hover, and the visitor can pin a row.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import asdict
from functools import partial
from typing import Literal, TypeVar, Unpack

import streamlit as st

from app.board_messages.board_texts import BoardNames, board_texts
from app.board_messages.packing import encode, pack, pack_panel
from app.board_messages.panel import Category, Panel
from app.matrix_board.component import mount, mount_dragged
from app.words.i18n import _

P = TypeVar("P")


def matrix_board(
    panels: Sequence[Panel],
    *,
    key: str,
    labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
    pinned: int | None = None,
    on_pin: Callable[[int | None], None] | None = None,
    on_turn: Callable[[str, object], None] | None = None,
    on_open: Callable[[str], None] | None = None,
    redraw: Callable[[str], Panel | None] | None = None,
    scale: Literal["shared", "panel"] = "shared",
    transform: Literal["linear", "sqrt", "log"] = "linear",
    diverging: bool = False,
    ceiling: float = 0.0,
    unsigned: bool = False,
    percent: bool = False,
    categories: Sequence[Category] | None = None,
    frame: int = 0,
    last_frame: int = 0,
    on_frame: Callable[[int], None] | None = None,
    panel_size: int = 520,
    file_name: str = "attention-matrices",
    text: str = "",
    address: str = "",
    **names: Unpack[BoardNames],
) -> None:
    """Draw matrices side by side.

    Panels of one shape share crosshair, zoom and pan. A click on a cell (a second tap, or Enter) pins its row in every
    panel with as many rows as the first. The pin stays as long as the page passes it back.

    Args:
        panels: the matrices, at least one; shapes may differ.
        key: the element's key, unique in the app.
        labels: one label per row and per column, for panels without their own; None to number them.
        col_labels: one label per column if the columns are not the same tokens as the rows.
        pinned: the pinned row; ignored in panels with fewer rows.
        on_pin: called before the script's next run with the pinned row, or None if the pin was removed. Without this
            function, rows cannot be pinned.
        on_turn: called before the script's next run, when the visitor moves a knob (a panel's slider), with the panel's
            key and the new value, which has not been checked.
        on_open: called before the next run with the key of a panel whose settings the visitor wants to open.
        redraw: returns a panel by its key while its knob is dragged, in a rerun that draws only this panel; None if the
            panel no longer exists. Without this function, each change of a knob reruns the board's script or
            fragment.
        scale: one colour scale for all panels, or one per panel.
        transform: how values map to colours; the decades of "log" follow from the data, six at most.
        diverging: show both sides of the colour scale even if no value is negative.
        ceiling: the end of the shared scale if a value reaches it; larger values have a separate colour, explained in
            the legend. If no value reaches it, or it is 0, the scale ends at the largest magnitude.
        unsigned: write numbers without their signs, on a board whose signs only select the side of the colour scale.
        percent: write numbers as percentages.
        categories: for a board whose values are category numbers instead of magnitudes, the categories 1, 2, ... (at
            most 2047); scale and transform then have no effect.
        frame: the frame of the animation that the board shows, from 1; 0 for a board without an animation.
        last_frame: the last frame of the animation.
        on_frame: called before the next run with the frame in which the animation ended or was stopped.
        panel_size: the largest side of a panel, in pixels.
        file_name: the name of downloaded pictures, without extension.
        text: the visitor's text, which downloaded pictures show; empty to show the labels of the rows.
        address: the address of the link after the note.
        names: texts of this board that replace the default ones, by their names in ``board_texts``.

    Raises:
        ValueError: if a panel is not a matrix, is empty or holds infinities, or if labels do not fit.
    """
    settings = {
        "pinned": pinned,
        "scale": scale,
        "transform": transform,
        "ceiling": ceiling,
        "unsigned": unsigned,
        "percent": percent,
        "categories": None if categories is None else [asdict(category) for category in categories],
        "panel_size": panel_size,
        "pins": on_pin is not None,
        "turns": on_turn is not None,
        "frame": frame,
        "last_frame": last_frame,
        "file_name": file_name,
        "text": text,
        "address": address,
        "texts": board_texts(_, pins=on_pin is not None, categories=categories is not None, **names),
    }

    def pin(event: object) -> None:
        if on_pin and isinstance(event, dict):
            on_pin(event["row"])

    def stop(event: object) -> None:
        if on_frame and isinstance(event, int):
            on_frame(event)

    # The session stores the callbacks, so they refer only to the panels' keys. References to the panels themselves
    # would keep all matrices in memory.
    keys = frozenset(panel.key for panel in panels)
    columns = labels if col_labels is None else col_labels
    message, large_panels = pack(panels, labels, columns, key=key, diverging=diverging, last_turn=last_turn(key))
    events = {"pin": pin, "stop": stop, **setting_events(key, keys, on_turn, on_open)}
    mount(message, key=key, events=events, settings=settings, panels=large_panels)
    if on_turn and redraw:
        to_message = partial(pack_panel, row_labels=labels, col_labels=columns, diverging=diverging)
        send_dragged_panel(key, keys, redraw, to_message, on_turn)


def last_turn(key: str) -> int:
    """Return the sequence number of the last knob change that the page received from the board with this key."""
    turn: int = st.session_state.get(f"{key}.last_turn", 0)
    return turn


def setting_events(
    key: str, panels: Set[str], on_turn: Callable[[str, object], None] | None, on_open: Callable[[str], None] | None
) -> dict[str, Callable[[object], None]]:
    """Return the callbacks for knobs and for buttons that open the settings of a panel, by the event's name."""

    def turn(event: object) -> None:
        if on_turn and isinstance(event, dict):
            st.session_state[f"{key}.last_turn"] = event.get("turn", 0)
            on_turn(str(event.get("panel")), event.get("value"))

    def open_settings(event: object) -> None:
        if on_open and isinstance(event, str) and event in panels:
            on_open(event)

    return {"turn": turn, "open": open_settings}


@st.fragment
def send_dragged_panel(
    key: str,
    panels: Set[str],
    redraw: Callable[[str], P | None],
    to_message: Callable[[P], bytes],
    on_turn: Callable[[str, object], None],
) -> None:
    """Send only the panel whose knob is being dragged, in a rerun of this fragment.

    If no knob is being dragged, for example because a run draws the whole board, an empty message is sent.
    """
    state_key = f"{key}.dragged"

    def turn(event: object) -> None:
        if isinstance(event, dict) and event.get("panel") in panels:
            on_turn(event["panel"], event.get("value"))
            st.session_state[state_key] = event["panel"], event.get("turn", 0)

    panel, turn_number = st.session_state.pop(state_key, (None, 0))
    redrawn = None if panel is None else redraw(panel)
    header = {"kind": "dragged", "key": key, "last_turn": turn_number}
    mount_dragged(encode(header, b"" if redrawn is None else to_message(redrawn)), key=key, turn=turn)
