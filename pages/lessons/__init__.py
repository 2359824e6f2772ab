"""Lessons: the ones that ship, one from a file, and making your own."""
