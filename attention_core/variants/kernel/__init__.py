"""Kernel variants: dot products of features replace the exponential, which makes the cost linear in n."""
