"""The browser component that shows one sentence under several variants, with arcs to the words a word attends to."""

from app.live_sentence.sentence import Row, SentenceState, live_sentence

__all__ = ["Row", "SentenceState", "live_sentence"]
