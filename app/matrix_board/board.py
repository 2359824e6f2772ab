"""A board of all matrices of a comparison, with linked crosshair and zoom, exact values on hover and a pinned row."""

from collections.abc import Callable, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Literal

import streamlit as st

from app.board_messages.board_words import board_words
from app.board_messages.packing import encode, pack, pack_panel
from app.board_messages.panel import Category, Panel
from app.matrix_board.component import mount, mount_held
from app.words.i18n import _


@dataclass(frozen=True)
class BoardEvent:
    """An action of the visitor on the board.

    Attributes:
        pinned: the pinned row, or None if the pin was removed.
    """

    pinned: int | None


def matrix_board(
    panels: Sequence[Panel],
    *,
    key: str,
    labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
    pinned: int | None = None,
    on_pin: Callable[[BoardEvent], None] | None = None,
    on_turn: Callable[[str, object, bool], None] | None = None,
    on_open: Callable[[str], None] | None = None,
    redraw: Callable[[str], Panel | None] | None = None,
    scale: Literal["shared", "panel"] = "shared",
    transform: Literal["linear", "sqrt", "log"] = "linear",
    diverging: bool = False,
    ceiling: float = 0.0,
    above_ceiling: str = "",
    categories: Sequence[Category] | None = None,
    none: str | None = None,
    later: str = "",
    frame: int = 0,
    last_frame: int = 0,
    on_frame: Callable[[int], None] | None = None,
    masked: str | None = None,
    unit: str | None = None,
    row_title: str | None = None,
    col_title: str | None = None,
    row_name: str | None = None,
    col_name: str | None = None,
    note: str = "",
    panel_size: int = 520,
    file_name: str = "attention-matrices",
) -> None:
    """Draw matrices side by side.

    Panels of one shape share crosshair, zoom and pan. A click on a cell (a second tap, or Enter) pins its row in every
    panel that has the board's rows. The pin stays as long as the page passes it back.

    Args:
        panels: the matrices, at least one; shapes may differ.
        key: the element's key, unique in the app.
        labels: one label per row and per column, for panels without their own; None: they are numbered.
        col_labels: one label per column if the columns are not the same tokens as the rows.
        pinned: the pinned row; ignored in panels with fewer rows.
        on_pin: called before the script's next run, like other widgets' callbacks; None: rows cannot be pinned.
        on_turn: called before the next run with a panel's key, its knob's new value, which has not been checked, and
            whether the knob is still being dragged.
        on_open: called before the next run with the key of a panel whose settings the visitor wants to open.
        redraw: returns a panel by its key while its knob is dragged; that run draws nothing else. It returns None if
            the panel no longer exists. Without this function, each turn reruns the script or fragment of the board.
        scale: one colour scale for all panels, or one per panel.
        transform: how values map to colours; the decades of "log" follow from the data, six at most.
        diverging: show both sides of the colour scale even if no value is negative.
        ceiling: the end of the shared scale if a value reaches it; larger values have a separate colour, explained in
            the legend. 0: the scale ends at the largest magnitude.
        above_ceiling: the legend's words for larger values than the ceiling, with ``{most}`` for the largest.
        categories: the meanings of the numbers 1, 2, ... (at most 2047) if they are kinds instead of magnitudes; scale
            and transform then have no effect.
        none: the name of 0 on a board of categories; None if no panel has zeros.
        later: the name of a category in the frames before it is shown.
        frame: the frame of the animation that the board shows, from 1; 0 for a board without an animation.
        last_frame: the last frame of the animation.
        on_frame: called before the next run with the frame in which the animation ended or was stopped.
        masked: the name of NaN, "masked" by default.
        unit: the name of the numbers, "weight" by default.
        row_title: the axis title of the rows, "queries" by default.
        col_title: the axis title of the columns, "keys" by default.
        row_name: the name of one row in the readout, "query" by default.
        col_name: the name of one column in the readout, "key" by default.
        note: a sentence under the panels.
        panel_size: the largest side of a panel, in pixels.
        file_name: the name of downloaded pictures, without extension.

    Raises:
        ValueError: if a panel is not a matrix, is empty or holds infinities, or if labels do not fit.
    """
    words = board_words(
        _,
        pins=on_pin is not None,
        categories=categories is not None,
        unit=unit,
        row_title=row_title,
        col_title=col_title,
        row_name=row_name,
        col_name=col_name,
        none=none,
        later=later,
        note=note,
        masked=masked,
        above_ceiling=above_ceiling,
    )
    settings = {
        "pinned": pinned,
        "scale": scale,
        "transform": transform,
        "ceiling": ceiling,
        "categories": None if categories is None else [asdict(category) for category in categories],
        "panel_size": panel_size,
        "pins": on_pin is not None,
        "turns": on_turn is not None,
        "frame": frame,
        "last_frame": last_frame,
        "file_name": file_name,
        "words": words,
    }

    def pin(reported: object) -> None:
        if on_pin and isinstance(reported, dict):
            on_pin(BoardEvent(reported["row"]))

    turn_key = f"{key}.heard"

    def turn(reported: object) -> None:
        if on_turn and isinstance(reported, dict):
            st.session_state[turn_key] = reported.get("turn", 0)
            on_turn(str(reported.get("panel")), reported.get("value"), reported.get("held") is True)

    keys = {
        panel.key for panel in panels
    }  # The session stores the functions below. A reference to panels would keep all matrices in memory.

    def open_settings(reported: object) -> None:
        if on_open and reported in keys:
            on_open(str(reported))

    def stop(reported: object) -> None:
        if on_frame and isinstance(reported, int):
            on_frame(reported)

    columns = labels if col_labels is None else col_labels
    last = st.session_state.get(turn_key, 0)
    message, parts = pack(panels, labels, columns, key=key, diverging=diverging, last_turn=last)
    events = {"pin": pin, "turn": turn, "open": open_settings, "stop": stop}
    mount(message, key=key, events=events, settings=settings, parts=parts)
    if on_turn and redraw:

        def packed(panel: str) -> bytes:
            drawn = redraw(panel)
            return b"" if drawn is None else pack_panel(drawn, labels, columns, diverging)

        hold(key, {panel.key for panel in panels}, packed, on_turn)


@st.fragment
def hold(
    key: str, panels: Set[str], pack_panel: Callable[[str], bytes], on_turn: Callable[[str, object, bool], None]
) -> None:
    """Send only the panel whose knob is being dragged. In a run of the whole board, send no panel.

    Args:
        key: the board's key.
        panels: the keys of its panels.
        pack_panel: returns the message of a panel by its key; empty if the panel no longer exists.
        on_turn: as in `matrix_board`.
    """
    asked = f"{key}.held"

    def turn(reported: object) -> None:
        if isinstance(reported, dict) and reported.get("panel") in panels:
            on_turn(reported["panel"], reported.get("value"), True)
            st.session_state[asked] = reported["panel"], reported.get("turn", 0)

    panel, turned = st.session_state.pop(asked, (None, 0))
    header = {"kind": "held", "key": key, "heard": turned}
    mount_held(encode(header, b"" if panel is None else pack_panel(panel)), key=key, turn=turn)
