"""Running of tasks in a process: cache, progress and execution."""
