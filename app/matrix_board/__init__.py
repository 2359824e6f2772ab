"""Browser components that draw matrices side by side, a matrix row as coloured text, or pictures of all heads."""

from app.board_messages.panel import Category, Knob, Panel
from app.matrix_board.board import matrix_board
from app.matrix_board.row_strips import row_strips
from app.matrix_board.thumbnails import HeadLabel, shades, thumbnail_board

__all__ = ["Category", "HeadLabel", "Knob", "Panel", "matrix_board", "row_strips", "shades", "thumbnail_board"]
