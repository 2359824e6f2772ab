"""The browser component that shows a text and colours each token by the change of its loss in a changed model."""

from app.reading_board.reading import Reading, ReadingState, reading_board

__all__ = ["Reading", "ReadingState", "reading_board"]
