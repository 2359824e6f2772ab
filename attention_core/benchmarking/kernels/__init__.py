"""Timing as kernels are timed: warmed, the cache flushed, each call by itself, held against what the device can do."""
