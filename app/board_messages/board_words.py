"""The texts of a board of matrices."""

from typing import Protocol


class Translate(Protocol):
    """A function that translates a message and fills in its values."""

    def __call__(self, message: str, **values: object) -> str:
        """Return the message in the reader's language."""


def in_english(message: str, **values: object) -> str:
    """Return a message unchanged, with its values filled in."""
    return message.format(**values) if values else message


def board_words(
    _: Translate,
    *,
    pins: bool,
    categories: bool = False,
    unit: str | None = None,
    row_title: str | None = None,
    col_title: str | None = None,
    row_name: str | None = None,
    col_name: str | None = None,
    none: str | None = None,
    later: str = "",
    note: str = "",
    masked: str | None = None,
    above_ceiling: str = "",
) -> dict[str, object]:
    """Return the board's texts; ``matrix_board`` describes the arguments after ``categories``.

    Args:
        _: the function that translates a message.
        pins: whether rows can be pinned.
        categories: whether the numbers are kinds instead of magnitudes.
        unit: see ``matrix_board``, also for the other arguments.
        row_title: see ``matrix_board``.
        col_title: see ``matrix_board``.
        row_name: see ``matrix_board``.
        col_name: see ``matrix_board``.
        none: see ``matrix_board``.
        later: see ``matrix_board``.
        note: see ``matrix_board``.
        masked: see ``matrix_board``.
        above_ceiling: see ``matrix_board``.
    """
    row = row_name or _("query")
    words: dict[str, object] = {
        "unit": unit or _("weight"),
        "rows": row_title or _("queries"),
        "cols": col_title or _("keys"),
        "row": row,
        "col": col_name or _("key"),
        "none": none or "",
        "later": later,
        "note": note,
        "masked": masked or _("masked"),
        "transforms": {"linear": "", "sqrt": _("square-root scale"), "log": _("log scale")},
        "own_scale": _("one colour scale per panel"),
        "same_scale": _("same colours as {panel}"),
        "over": _("> {end} (max {most})"),
        "under": _("< {end} (min {most})"),
        "play": _("Play"),
        "stop": _("Stop"),
        "zoom_in": _("Zoom in"),
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
    if above_ceiling:
        words["over"] = above_ceiling
    if not pins:
        words |= {
            "hint": _("Ctrl + wheel or double-click to zoom"),
            "touch_hint": _("Tap to read a cell · pinch to zoom"),
            "help": _(
                "Matrices. Use the arrow keys to move between cells, and Page Up and Page Down to move by ten "
                "rows. N and P select the next and the previous matrix. Plus zooms in, minus zooms out, and "
                "zero shows the whole matrix."
            ),
        }
    if categories:
        words["pooled"] = _("Each pixel shows one of up to {count} cells. Zoom in to see each cell.")
    return words
