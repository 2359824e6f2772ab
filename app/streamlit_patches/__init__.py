"""Replacements for private methods of Streamlit. ``patches.apply`` makes all of them."""
