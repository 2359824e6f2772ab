"""Claims about landmarks, pooling and the rank of attention."""
