"""Sentences of the longest stories on the Inside page: functions of numbers, one module per variant."""
