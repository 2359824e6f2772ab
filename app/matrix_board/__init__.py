"""Browser components that draw attention matrices: side by side, one row as coloured text, or all heads of a model."""

from app.board_messages.panel import Category, Knob, Panel
from app.matrix_board.board import matrix_board
from app.matrix_board.row_strips import Strip, row_strips
from app.matrix_board.thumbnails import HeadLabel, shades, thumbnail_board

__all__ = ["Category", "HeadLabel", "Knob", "Panel", "Strip", "matrix_board", "row_strips", "shades", "thumbnail_board"]
