"""Claims about softmax attention itself: its memory, its entropy, its normaliser and its series."""
