"""Lessons: steps that are states of the lab, each with a question that is asked before its answer is seen."""
