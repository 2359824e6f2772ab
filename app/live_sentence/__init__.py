"""The browser component that shows one sentence under several variants, with the arcs of the word that looks."""

from app.live_sentence.sentence import Row, Turn, live_sentence

__all__ = ["Row", "Turn", "live_sentence"]
