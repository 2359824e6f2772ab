"""Attention through landmarks and pooled tokens."""
