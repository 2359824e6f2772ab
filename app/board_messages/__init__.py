"""Messages to the browser that describe a board, which draws attention matrices side by side.

They do not need Streamlit, so notebooks send the same messages as the app.
"""
