"""Analyses of the allowed pairs of tokens, and of how far information travels through layers."""
