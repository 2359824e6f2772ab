"""Claims about the delta rule."""
