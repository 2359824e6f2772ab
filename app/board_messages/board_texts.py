"""All words on a board, which draws attention matrices side by side: axis titles, buttons, hints and legends."""

from typing import Protocol, TypedDict, Unpack


class Translate(Protocol):
    """A function that translates a message and fills in its values."""

    def __call__(self, message: str, **values: object) -> str:
        """Return the message in the visitor's language, with its values filled in."""


def in_english(message: str, **values: object) -> str:
    """Return a message unchanged, with its values filled in."""
    return message.format(**values) if values else message


class BoardNames(TypedDict, total=False):
    """Names and texts of one board.

    Attributes:
        unit: the name of the values, "weight" by default.
        row_title: the axis title of the rows, "queries" by default.
        col_title: the axis title of the columns, "keys" by default.
        row_name: the name of one row in the readout, "query" by default.
        col_name: the name of one column in the readout, "key" by default.
        zero: the name of the value 0 on a board whose values are category numbers; without it, 0 has no name.
        upcoming: on an animated board, the readout's text for cells whose category only a later frame shows.
        masked: the name of cells whose value is NaN, "masked" by default.
        note: a sentence under the panels.
        link: the text of a link after the note.
        reading: how to read a panel and pin a row with a mouse, next to the legend. It replaces the mouse hint.
        touch_reading: how to read a panel, for touch screens. The hint for touch screens is under the panels.
        above_ceiling: the legend's words for values above the board's ceiling; ``{most}`` is the largest value.
    """

    unit: str | None
    row_title: str | None
    col_title: str | None
    row_name: str | None
    col_name: str | None
    zero: str | None
    upcoming: str
    masked: str | None
    note: str
    link: str
    reading: str
    touch_reading: str
    above_ceiling: str


def board_texts(
    _: Translate, *, pins: bool, categories: bool = False, **names: Unpack[BoardNames]
) -> dict[str, object]:
    """Return all texts of one board in the visitor's language, by the names that the browser uses.

    Args:
        _: the function that translates a message.
        pins: whether rows can be pinned.
        categories: whether the values are category numbers instead of magnitudes.
        names: texts of this board that replace the default ones.
    """
    row = names.get("row_name") or _("query")
    texts: dict[str, object] = {
        "unit": names.get("unit") or _("weight"),
        "rows": names.get("row_title") or _("queries"),
        "cols": names.get("col_title") or _("keys"),
        "row": row,
        "col": names.get("col_name") or _("key"),
        "zero": names.get("zero") or "",
        "upcoming": names.get("upcoming", ""),
        "note": names.get("note", ""),
        "link": names.get("link", ""),
        "masked": names.get("masked") or _("masked"),
        "transforms": {"linear": "", "sqrt": _("square-root scale"), "log": _("log scale")},
        "own_scale": _("one colour scale per panel"),
        "same_scale": _("colour scale of {panel}"),
        "over": names.get("above_ceiling") or _("> {end} (max {most})"),
        "under": _("< {end} (min {most})"),
        "play": _("Play"),
        "stop": _("Stop"),
        "zoom_in": _("Zoom in"),
        "reset": _("Whole matrix (0)"),
        "download": _("Download as"),
        "pooled": _(
            "Each pixel combines up to {count} cells and shows the cell value that is largest in absolute value. Zoom "
            "in to see each cell."
        ),
        "reading": names.get("reading", ""),
        "touch_reading": names.get("touch_reading", ""),
        "swipe": _("Swipe for {names}"),
        "hint": "" if names.get("reading") else _("Click a row to pin its {row}. Double-click to zoom.", row=row),
        "touch_hint": _("Tap to read a cell, tap again to pin its {row} · pinch to zoom", row=row),
        "help": _(
            "Attention matrices. Use the arrow keys to move between cells, and Page Up and Page Down to move "
            "by ten rows. N and P select the next and the previous matrix. Enter pins the {row} of the cell, "
            "and Escape unpins it. Plus zooms in, minus zooms out, and zero shows the whole matrix.",
            row=row,
        ),
    }
    if not pins:
        texts |= {
            "hint": _("Ctrl + wheel or double-click to zoom"),
            "touch_hint": _("Tap to read a cell · pinch to zoom"),
            "help": _(
                "Matrices. Use the arrow keys to move between cells, and Page Up and Page Down to move by ten "
                "rows. N and P select the next and the previous matrix. Plus zooms in, minus zooms out, and "
                "zero shows the whole matrix."
            ),
        }
    if categories:
        texts["pooled"] = _("Each pixel shows one of up to {count} cells. Zoom in to see each cell.")
    return texts
