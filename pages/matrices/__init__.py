"""The Matrices page: the attention matrices of the chosen variants for the same queries, keys and values."""
