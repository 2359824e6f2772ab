"""Speed and memory of every variant against full attention and against other people's code, in one run, as ratios."""
