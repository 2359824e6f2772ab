"""Attention in which each query attends to the few blocks of consecutive keys that have the highest scores for it."""
