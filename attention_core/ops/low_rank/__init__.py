"""Attention through few representatives of many tokens: landmarks (means of tokens) and pooled neighbours."""
