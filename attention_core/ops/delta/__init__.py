"""Fast weights (a matrix that each token updates) and the delta rule, which erases a key's old value before writing."""
