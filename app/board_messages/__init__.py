"""Code for messages to the browser that describe a board, which draws attention matrices side by side.

The code does not need Streamlit, so notebooks send the same messages as the app.
"""
