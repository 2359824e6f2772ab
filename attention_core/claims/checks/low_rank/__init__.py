"""Claims about landmarks (averages that represent tokens), pooling, and the rank of attention matrices."""
