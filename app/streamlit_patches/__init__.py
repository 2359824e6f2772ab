"""Patches that replace private methods of Streamlit. ``patches.apply`` applies all of them."""
