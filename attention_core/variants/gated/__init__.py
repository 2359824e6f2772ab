"""Recurrent variants that forget by rule: what is erased or fades before a token is written."""
