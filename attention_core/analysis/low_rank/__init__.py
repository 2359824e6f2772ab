"""Analyses of approximations of attention by fewer numbers: low-rank factors, selected rows and feature maps."""
