"""Inside: one variant taken apart, step by step, with its real intermediates on the input."""
