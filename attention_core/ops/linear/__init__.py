"""Linear attention: feature maps, causal sums and decay."""
