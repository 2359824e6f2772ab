"""The command, replicas, headers of answers, warm-up and memory settings of a server."""
