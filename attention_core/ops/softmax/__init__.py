"""Softmax attention: masks, exact attention, and attention to parts of the keys, merged exactly by log-sum-exp."""
