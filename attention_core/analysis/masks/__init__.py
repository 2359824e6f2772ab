"""Analyses of masks: which pairs of tokens may attend, and how far information travels through several layers."""
