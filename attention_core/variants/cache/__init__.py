"""Variants with a smaller key-value cache: fewer tokens, fewer heads or fewer numbers per token."""
