"""The browser component that shows one sentence under several attention variants.

Arcs lead from one word to the words that it attends to.
"""

from app.live_sentence.sentence import Row, SentenceState, live_sentence

__all__ = ["Row", "SentenceState", "live_sentence"]
