"""Softmax attention: masks, exact attention, and parts of it that are joined by their log-sum-exp."""
