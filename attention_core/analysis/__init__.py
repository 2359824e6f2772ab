"""Analyses of inputs and attention matrices. Each takes one record of queries, keys and values and returns one result.

An analysis is a pure function of its record, for example ``look(qkv, ...)``; random numbers depend only on its
arguments. Questions that need several measurements are in ``experiments``.

Docstrings leave out the arguments that mean the same everywhere:

- ``qkv``: the record, with queries, keys and values ``[H, n, d]``.
- ``layers``: one record per layer, of the same tokens.
- ``attention``: the variant with its settings.
- ``head``: index of the head. None means all heads, and the result is then their mean unless stated otherwise.
- ``causal``: whether future keys are hidden.
- ``special``: whether tokens that the tokenizer added are shown; without them, rows keep their total mass.
"""
