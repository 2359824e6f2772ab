"""Linear attention: feature maps, causal sums, decay."""
