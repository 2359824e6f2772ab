"""The Matrices page: the attention matrices of the chosen variants on the same queries, keys and values."""
