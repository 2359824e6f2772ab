"""State that links carry: the options, the options shared by all pages, and reading and writing addresses."""
