"""The pages: one folder each, declared by the ``PAGE`` of its ``page.py``."""
