"""The browser component that shows a text and tints each token by the change of its loss."""

from app.reading_board.reading import Reading, ReadingState, reading_board

__all__ = ["Reading", "ReadingState", "reading_board"]
