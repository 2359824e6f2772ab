"""The browser component that draws attention matrices side by side, one row of them as text, or a model's heads."""

from app.board_messages.panel import Category, Knob, Panel
from app.matrix_board.board import matrix_board
from app.matrix_board.row_strips import Strip, row_strips
from app.matrix_board.thumbnails import HeadLabel, shades, thumbnail_board

__all__ = ["Category", "HeadLabel", "Knob", "Panel", "Strip", "matrix_board", "row_strips", "shades", "thumbnail_board"]
