"""The code that all pages of the Streamlit app share, such as widgets, figures and links.

The attention algorithms themselves are in ``attention_core``.
"""
