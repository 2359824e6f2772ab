"""The Error page: each attention variant's approximation error over its cost, its budget, or the sequence length.

A budget is the setting of a variant that trades cost for accuracy, such as a window.
"""
