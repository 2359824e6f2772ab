"""Looks: one record in, one frozen result out, usable without a browser.

A look is a pure function of a record, ``look(qkv, ...)``, that is seeded by what it is asked and by nothing else; a
question that takes several measurements is an experiment.
"""
