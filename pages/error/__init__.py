"""The Error page: the approximation error of each variant against its cost, its budget and the sequence length."""
