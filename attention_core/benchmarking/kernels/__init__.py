"""Benchmarks of single calls of variants and other attention kernels, and their comparison with the device's limits."""
