"""Analyses of attention matrices, such as comparisons with softmax, scores of heads and the effects of settings."""
