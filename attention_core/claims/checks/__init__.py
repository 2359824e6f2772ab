"""One file per claim: what is measured, the rule that judges it, and its sentences."""
