"""Linear attention, in which products of features replace the exponential: feature maps, causal sums and decay."""
