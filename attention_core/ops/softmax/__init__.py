"""Softmax attention: masks, exact attention, and partial attentions that are merged by their log-sum-exp."""
