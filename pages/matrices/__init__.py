"""Matrices: where does each variant look? All on the same queries, keys and values."""
