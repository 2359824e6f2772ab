"""Kernel variants: a feature map replaces the exponential, and the cost becomes linear in n."""
