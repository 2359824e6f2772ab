"""Kernel variants: a feature map takes the place of the exponential, and cost becomes linear in n."""
