"""The browser component that draws matrices: a comparison on one board, and a model's heads in miniature."""

from app.matrix_board.board import BoardEvent, matrix_board
from app.matrix_board.panel import Category, Panel
from app.matrix_board.thumbnails import thumbnail_board

__all__ = ["BoardEvent", "Category", "Panel", "matrix_board", "thumbnail_board"]
