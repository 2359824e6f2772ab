"""Mixed variants: attention of quadratic cost within chunks or a window of tokens, and linear attention beyond them."""
