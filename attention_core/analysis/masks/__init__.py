"""Analyses of allowed query–key pairs, of averages of tokens, and of the pairs that several layers connect."""
