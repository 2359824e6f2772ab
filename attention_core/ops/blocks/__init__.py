"""Attention to blocks of keys that are chosen by their scores."""
