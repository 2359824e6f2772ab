"""Sparse variants: each query attends to some of the keys, selected by a fixed pattern or from the data."""
