"""Claims about the delta rule, which subtracts what is stored under a key before it stores a new value there."""
