"""The state that links carry: a page's own options, the options that all pages share, and addresses."""
