"""Parts that a process needs to run tasks: a cache of results, reports of progress, and the execution of one task."""
