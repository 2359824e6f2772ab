"""The Entropy page: the entropy and the totals of attention rows, and the effects of length, RoPE and temperature."""
