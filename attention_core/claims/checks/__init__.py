"""One module per claim (a statement from an article): what is measured, the rule for the verdict, and the texts."""
