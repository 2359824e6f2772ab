"""Analyses of attention matrices: comparisons, heads, settings and single rows."""
