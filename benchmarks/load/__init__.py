"""The load test of the app's server: simulated visitors use Streamlit's websocket and measure response times."""
