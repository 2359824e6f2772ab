"""Code of the server: the command line, processes behind a proxy, response headers, warm-up and memory settings."""
