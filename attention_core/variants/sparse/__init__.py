"""Sparse variants: each query attends to some keys, by a pattern fixed in advance or found from the data."""
