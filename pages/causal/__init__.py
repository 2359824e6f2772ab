"""The Causal page: which variants can generate text token by token, and at what cost."""
