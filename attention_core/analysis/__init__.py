"""Analyses of inputs and attention matrices, which take one record and return one frozen result.

An analysis is a pure function of a record, ``look(qkv, ...)``; random numbers depend only on its arguments. Questions
that need several measurements are in ``experiments``.
"""
