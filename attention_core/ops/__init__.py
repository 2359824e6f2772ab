"""Algorithms that several attention variants share. Nothing here imports a variant or the registry of variants."""
