"""Causal: can it generate, and at what cost?"""
