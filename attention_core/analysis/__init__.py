"""Analyses of inputs and attention matrices. Each takes one record of queries, keys and values and returns one result.

An analysis is a pure function of its record, for example ``look(qkv, ...)``; random numbers depend only on its
arguments. Questions that need several measurements are in ``experiments``.
"""
