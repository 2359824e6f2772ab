"""Attention in which few vectors represent many tokens: landmarks (means of tokens) or pools of neighbouring tokens."""
