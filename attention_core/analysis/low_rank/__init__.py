"""Analyses of low-rank factors, chosen columns and rows, and feature maps."""
