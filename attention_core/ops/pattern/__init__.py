"""Sparse attention whose pairs are known in advance, computed without an n × n matrix."""
