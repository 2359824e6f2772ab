"""Claims from articles, one module each: how a claim is measured, when it holds, and the texts that are shown.

In each module, ``measure`` runs the experiment on an input and yields rows. ``numbers`` computes from them the
quantities that the claim is judged by. ``CLAIM`` declares the rule and the texts.
"""
