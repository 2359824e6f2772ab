"""Forms of the input panel that are long enough for a module of their own. Each form is for one kind of input."""
