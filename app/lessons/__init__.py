"""Lessons: sequences of screens, each with a question that the visitor answers before the page shows its answer."""
