"""Analyses of recurrent variants, which read a text token by token and keep a state of constant size."""
