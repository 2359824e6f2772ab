"""The Inside page: one variant taken apart, step by step, with its real intermediates."""
