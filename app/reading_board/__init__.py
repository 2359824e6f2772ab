"""The browser component that shows a text as models read it: the loss of each token under the words."""

from app.reading_board.reading import Look, Reading, reading_board

__all__ = ["Look", "Reading", "reading_board"]
