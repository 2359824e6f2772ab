"""Analyses of how few numbers describe attention: low-rank factors, chosen rows and columns, and feature maps."""
