"""Analyses of inputs and attention matrices. Each takes one record of queries, keys and values and returns one result.

An analysis is a pure function: its result depends only on its arguments, even if it draws random numbers. Questions
that need several measurements are in ``experiments``.
"""
