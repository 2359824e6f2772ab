"""Attention in which each query chooses a few blocks of consecutive keys by their scores."""
