"""Widgets and parts of a page that several pages use."""
