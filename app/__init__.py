"""Streamlit: what all pages share. No tensor mathematics."""
