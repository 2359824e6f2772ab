"""Lessons: sequences of screens, each with a question that the visitor answers before its answer is shown."""
