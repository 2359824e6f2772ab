"""Low-rank factors, columns and feature maps."""
