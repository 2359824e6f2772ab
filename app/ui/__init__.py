"""Widgets and page parts that several pages use."""
