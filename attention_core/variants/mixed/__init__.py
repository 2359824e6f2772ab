"""Mixed variants: quadratic inside chunks, linear across them."""
