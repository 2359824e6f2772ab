"""Model: what a variant in softmax's place does to what a model says."""
