"""The Entropy page: how evenly queries spread attention over the keys, and how length, RoPE and scaling affect it."""
