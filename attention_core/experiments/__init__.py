"""Experiments: one module per question, a record in, numbers out, usable without a browser."""
