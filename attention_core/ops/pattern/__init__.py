"""Sparse attention whose allowed pairs are known in advance, such as windows, computed without an n × n matrix."""
