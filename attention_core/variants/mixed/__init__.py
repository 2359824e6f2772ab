"""Mixed variants: quadratic attention inside chunks of tokens or a window, linear attention beyond them."""
