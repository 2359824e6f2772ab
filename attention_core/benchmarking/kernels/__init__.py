"""Benchmarks that time single calls of variants and of other kernels, and compare the times with a device's limits."""
