"""The browser component that shows a text with bars under each token: the token's loss under several models."""

from app.reading_board.reading import Reading, ReadingState, reading_board

__all__ = ["Reading", "ReadingState", "reading_board"]
