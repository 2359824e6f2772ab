"""Kernel benchmarks: warm-up, a flushed cache, single calls, and a comparison with the limits of the device."""
