"""The Causal page: can it generate, and at what cost?"""
