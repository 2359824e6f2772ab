"""Dense variants: every query attends to every key."""
