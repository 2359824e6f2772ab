"""Sparse variants: each query looks at some keys, by a pattern fixed in advance or found from the data."""
