"""Code for long computations: the queue that all visitors share, the processes that run tasks, caches and progress."""
