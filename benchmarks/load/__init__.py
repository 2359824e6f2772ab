"""Visitors who speak Streamlit's websocket protocol, to see how many of them a server serves, and how fast."""
