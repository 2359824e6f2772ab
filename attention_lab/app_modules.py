"""Imports the modules of the web app that notebooks use: the figures, and the interactive display of matrices.

They need no Streamlit. The app's modules import each other from a package named ``app``. A notebook may use another
package of this name, so ``app`` refers to the web app's package only during these imports.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from attention_lab.launch import folder


@contextmanager
def _app_importable() -> Iterator[None]:
    """Import ``app`` from this project within the ``with`` block, then restore any other package with this name."""
    own = folder() / "app"
    theirs = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "app"}
    if "app" in theirs and str(own) in map(str, getattr(theirs["app"], "__path__", ())):
        yield  # in the app and its tests, ``app`` is already this project's package
        return
    for name in theirs:
        del sys.modules[name]
    sys.path.insert(0, str(own.parent))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(own.parent))
        for name in [name for name in sys.modules if name.partition(".")[0] == "app"]:
            del sys.modules[name]
        sys.modules.update(theirs)


with _app_importable():
    from app.board_messages.board_texts import board_texts, in_english
    from app.board_messages.packing import pack
    from app.board_messages.panel import Panel
    from app.figures import theme
    from app.figures.lines.curve import Curve
    from app.figures.lines.curves import curves
    from app.figures.lines.spread import spread
    from app.page_script.bundling import script
    from app.ui.palette import indices

__all__ = [
    "Curve",
    "Panel",
    "board_script",
    "board_texts",
    "curves",
    "in_english",
    "indices",
    "pack",
    "spread",
    "theme",
]


def board_script() -> str:
    """Return the board's script for anywidget, with its styles."""
    board = folder() / "app" / "matrix_board"
    sheets = ("host.css", "spoken.css", "panels.css", "board.css")
    css = "".join((board / "views" / name).read_text("utf-8") for name in sheets)
    return f"const CSS_OF_BOARD = {json.dumps(css)};\n{script(board / 'channels' / 'widget.js')}"
