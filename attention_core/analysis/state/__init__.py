"""Analyses of the states of recurrent variants, token by token."""
