"""Algorithms that several variants share. They import no variant and no registry."""
