"""The load test: simulated visitors use Streamlit's websocket protocol, and measure the server's response times."""
