"""One module per claim, a statement from an article: what is measured, the rule that judges it, and its sentences."""
