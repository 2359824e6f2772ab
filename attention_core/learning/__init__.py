"""Training of tiny transformers, one per attention variant, on small tasks with a known answer."""
