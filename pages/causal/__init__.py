"""The Causal page: which attention variants can generate text token by token, and at what cost."""
