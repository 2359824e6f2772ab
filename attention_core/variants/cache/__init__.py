"""A key-value cache made smaller: fewer tokens, fewer heads, fewer numbers."""
