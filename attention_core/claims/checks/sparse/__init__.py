"""Claims about sparse attention, in which each query attends only to some of the keys."""
