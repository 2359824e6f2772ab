"""The browser component that shows a text as models read it: the loss of each token under the words."""

from app.reading_board.reading import Reading, ReadingState, reading_board

__all__ = ["Reading", "ReadingState", "reading_board"]
