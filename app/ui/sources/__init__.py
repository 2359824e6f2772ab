"""Forms of the input panel that need a file of their own, one for each kind of source."""
