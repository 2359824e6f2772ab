"""The messages that describe a board of matrices to the browser, without Streamlit: the app and notebooks send them."""
