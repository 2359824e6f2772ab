"""Benchmarks of every attention variant: time and memory compared with full attention and with other libraries."""
