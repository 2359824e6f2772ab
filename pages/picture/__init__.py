"""The Picture page."""
