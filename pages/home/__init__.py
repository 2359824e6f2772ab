"""Home: what this is, and what can be compared."""
