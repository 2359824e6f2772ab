"""Server code: the command line, replicas, response headers, warm-up and memory settings."""
