"""A load test: simulated visitors who use Streamlit's websocket protocol, and the response times of a server."""
