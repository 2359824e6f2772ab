"""Sparse attention with pairs that are known in advance, computed without an n × n matrix."""
