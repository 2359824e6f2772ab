"""The lock for the state that torch keeps once for all threads: its default type and its random generator."""

import threading

TORCH_STATE = threading.Lock()
"""Threads hold the lock while they change this state, or make a model whose weights depend on it."""
