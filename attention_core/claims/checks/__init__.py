"""One module per claim from an article: the measurement, the rule that judges the claim, and the texts.

In each module, ``measure`` runs the experiment on an input and yields rows. ``numbers`` computes from them the
quantities that the claim is judged by. ``CLAIM`` declares the rule and the texts.
"""
