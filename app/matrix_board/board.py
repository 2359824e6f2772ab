"""A board of all matrices of a comparison, with linked crosshair and zoom, exact values on hover and a pinned row.

Values are sent as 16-bit floats, scaled by a power of two per panel so that the largest magnitude is just below 2^16.
This keeps 11 significant bits over nine decades below the largest value, and fewer bits below that. A number shown with
three digits is off by at most one in the third digit. Powers of two, such as a weight of 1, are exact. Positive values
never become zero, and NaN means masked. Four panels of n = 256 are 0.5 MB, of n = 512 2.1 MB; only changed panels are
sent.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st

from app.matrix_board.component import SMALL, digest_of, digested, encode, mount, mount_held
from app.matrix_board.panel import Category, Panel
from app.words.i18n import _

_RANGE = 16  # half floats are below 2^16
_MASKED = np.uint16(0x7E00)  # of the many codes for NaN only this one is sent, so that the browser can compare codes
_TINIEST = np.uint16(1)  # the smallest magnitude above zero


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
    pinned: int | None = None,
    on_pin: Callable[[BoardEvent], None] | None = None,
    on_turn: Callable[[str, object, bool], None] | None = None,
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
        pinned: the pinned row; ignored in panels with fewer rows.
        on_pin: called before the script's next run, like other widgets' callbacks; None: rows cannot be pinned.
        on_turn: called before the next run with a panel's key, its knob's new value, which has not been checked, and
            whether the knob is still being dragged.
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
        none: the meaning of 0 on a board of categories; None if no panel has zeros.
        later: the meaning of a category in the frames before it is shown.
        frame: the frame of the animation that the board shows, from 1; 0 for a board without an animation.
        last_frame: the last frame of the animation.
        on_frame: called before the next run with the frame in which the animation ended or was stopped.
        masked: the meaning of NaN, "masked" by default.
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
    words: dict[str, object] = {
        "unit": unit or _("weight"),
        "rows": row_title or _("queries"),
        "cols": col_title or _("keys"),
        "row": row_name or _("query"),
        "col": col_name or _("key"),
        "none": none or "",
        "later": later,
        "note": note,
        **_words(row_name or _("query")),
        "masked": masked or _("masked"),
    }
    if above_ceiling:
        words["over"] = above_ceiling
    if on_pin is None:
        words |= {
            "hint": _("Ctrl + wheel or double-click to zoom"),
            "touch_hint": _("Tap to read a cell · pinch to zoom"),
            "help": _(
                "Matrices. Use the arrow keys to move between cells, and Page Up and Page Down to move by ten "
                "rows. N and P select the next and the previous matrix. Plus zooms in, minus zooms out, and "
                "zero shows the whole matrix."
            ),
        }
    if categories is not None:
        words["pooled"] = _("Each pixel shows one of up to {count} cells. Zoom in to see each cell.")

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

    heard = f"{key}.heard"

    def turn(reported: object) -> None:
        if on_turn and isinstance(reported, dict):
            st.session_state[heard] = reported.get("turn", 0)
            on_turn(str(reported.get("panel")), reported.get("value"), reported.get("held") is True)

    def stop(reported: object) -> None:
        if on_frame and isinstance(reported, int):
            on_frame(reported)

    message, parts = pack(panels, labels, labels, key=key, diverging=diverging, heard=st.session_state.get(heard, 0))
    events = {"pin": pin, "turn": turn, "stop": stop}
    mount(message, key=key, events=events, settings=settings, parts=parts)
    if on_turn and redraw:

        def packed(panel: str) -> bytes:
            drawn = redraw(panel)
            return b"" if drawn is None else _pack_panel(drawn, labels, labels, diverging)

        hold(key, {panel.key for panel in panels}, packed, on_turn)


@st.fragment
def hold(
    key: str, panels: Set[str], pack_panel: Callable[[str], bytes], on_turn: Callable[[str, object, bool], None]
) -> None:
    """Draw only the panel whose knob is being dragged. In a run of the whole board, draw nothing.

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

    panel, heard = st.session_state.pop(asked, (None, 0))
    header = {"kind": "held", "key": key, "heard": heard}
    mount_held(encode(header, b"" if panel is None else pack_panel(panel)), key=key, turn=turn)


def pack(
    panels: Sequence[Panel],
    row_labels: Sequence[str] | None,
    col_labels: Sequence[str] | None,
    *,
    key: str,
    diverging: bool = False,
    heard: int = 0,
) -> tuple[bytes, dict[str, bytes]]:
    """Return the board's messages to the browser: the message of the board, and large panels by key.

    Arguments and errors are those of `matrix_board`; ``heard`` is the last turn of a knob that the panels show.
    """
    if not panels:
        raise ValueError("a board needs at least one panel")
    parts = {panel.key: _pack_panel(panel, row_labels, col_labels, diverging) for panel in panels}
    apart = parts if sum(map(len, parts.values())) > SMALL else {}
    inside = [] if apart else list(parts.values())
    header = {
        "kind": "board",
        "key": key,
        "parts": list(map(digest_of, parts.values())),
        "inside": list(map(len, inside)),
        "row_labels": row_labels,
        "col_labels": col_labels,
        "heard": heard,
    }
    # The message needs no digest of its bytes, because its header lists the digests of all parts.
    return encode(header, b"".join(inside), digest=digested()), apart


def _pack_panel(
    panel: Panel, row_labels: Sequence[str] | None, col_labels: Sequence[str] | None, diverging: bool
) -> bytes:
    coded = _coded(panel)
    for labels, common, count in zip(
        (panel.row_labels, panel.col_labels), (row_labels, col_labels), panel.values.shape, strict=True
    ):
        fitting = labels if labels is not None else common
        if fitting is not None and len(fitting) != count:
            raise ValueError(f"panel {panel.key!r} of shape {panel.values.shape} has {len(fitting)} labels for {count}")
    described = {
        "kind": "part",
        "rows": panel.values.shape[0],
        "cols": panel.values.shape[1],
        **{name: value for name, value in vars(panel).items() if name not in ("values", "top")},
        "borders": list(panel.borders),
        "knob": panel.knob and asdict(panel.knob),
        **coded.facts,
        "highest": max(coded.facts["highest"], panel.top),
        "signed": diverging or coded.facts["signed"],
    }
    return encode(described, coded.codes, digest=coded.digest)


@dataclass(frozen=True)
class Coded:
    """A matrix encoded for the browser.

    Attributes:
        codes: uint16, little-endian, row by row.
        facts: what the browser needs to read and colour the codes: the exponent of the power of two that scales them,
            the largest value and the smallest (at least and at most 0), the smallest magnitude above zero, and whether
            a value is negative or masked.
        digest: the digest of the codes.
    """

    codes: bytes
    facts: Mapping[str, Any]
    digest: str


_kept: dict[int, Coded] = {}
"""Encoded matrices by the matrix's ``id``, until the matrix is deleted."""


def _coded(panel: Panel) -> Coded:
    """Return a panel's encoded matrix. A read-only matrix is encoded once, as every run draws it again."""
    values = panel.values
    if values.flags.writeable:
        return _code(panel)
    known = _kept.get(id(values))
    if known is None:
        known = _kept[id(values)] = _code(panel)
        weakref.finalize(values, _kept.pop, id(values), None).atexit = False
    return known


def _code(panel: Panel) -> Coded:
    values = np.asarray(panel.values, dtype=np.float32)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"panel {panel.key!r} must be a matrix with at least one cell, not {values.shape}")
    if np.isinf(values).any():
        raise ValueError(f"panel {panel.key!r} holds infinities")
    masked = np.isnan(values)
    sizes = np.abs(np.where(masked, np.float32(0), values))
    largest = float(sizes.max())
    fraction, power = np.frexp(largest)
    # A fraction close to 1 is rounded up to 1 as a half float. The carry of 1 then halves all values, because the
    # largest would otherwise become infinite.
    carry = np.frexp(np.float16(fraction))[1]
    exponent = int(power + carry) - _RANGE if largest else 0
    codes = np.ldexp(values, -exponent).astype("<f2").view("<u2")
    lost = (sizes > 0) & (codes & 0x7FFF == 0)
    codes[lost] |= _TINIEST
    codes[masked] = _MASKED
    sent = codes.tobytes()
    facts = {
        "exponent": exponent,
        "highest": float(np.max(values, where=~masked, initial=0.0)),
        "lowest": float(np.min(values, where=~masked, initial=0.0)),
        "least": float(np.min(sizes, where=sizes > 0, initial=largest)),
        "signed": bool((values < 0).any()),
        "masked": bool(masked.any()),
    }
    return Coded(sent, facts, digested(sent))


def _words(row: str) -> dict[str, object]:
    """Return the board's other texts in the visitor's language, with this name for a row."""
    return {
        "transforms": {"linear": "", "sqrt": _("square-root scale"), "log": _("log scale")},
        "own_scale": _("each panel has its own scale"),
        "over": _("> {end} (max {most})"),
        "under": _("< {end} (min {most})"),
        "play": _("Play"),
        "stop": _("Stop"),
        "zoom_in": _("Zoom in (+)"),
        "reset": _("Whole matrix (0)"),
        "download": _("Download as"),
        "pooled": _("Each pixel shows the largest of up to {count} cells. Zoom in to see each cell."),
        "hint": _("Click to pin a {row} · Ctrl + wheel or double-click to zoom", row=row),
        "touch_hint": _("Tap to read a cell, tap again to pin its {row} · pinch to zoom", row=row),
        "help": _(
            "Attention matrices. Use the arrow keys to move between cells, and Page Up and Page Down to move "
            "by ten rows. N and P select the next and the previous matrix. Enter pins the {row} of the cell, "
            "and Escape unpins it. Plus zooms in, minus zooms out, and zero shows the whole matrix.",
            row=row,
        ),
    }
