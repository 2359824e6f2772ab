"""Attention matrices: errors, heads, settings, single rows."""
