"""Claims about linear attention: its cost, its algorithms, its kernels and its sparsity."""
