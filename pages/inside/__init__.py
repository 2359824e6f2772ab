"""The Inside page: explains one attention variant step by step, with its intermediate results on the current input."""
