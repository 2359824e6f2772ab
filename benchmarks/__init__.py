"""Benchmarks of every variant: its time and memory relative to full attention and to other implementations."""
