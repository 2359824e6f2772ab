"""The Entropy page: how evenly a query spreads its attention over the keys, and how length, RoPE and scaling matter."""
