"""Long computations of all visitors: their queue, the processes that run them, their caches, and their progress."""
