"""Dense variants: every query looks at every key."""
