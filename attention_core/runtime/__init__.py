"""How tasks run in a process: cache, progress, execution."""
