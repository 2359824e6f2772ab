"""One module per claim: what it measures, the rule that judges it, and its sentences."""
