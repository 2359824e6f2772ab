"""Speed and memory of every variant as ratios to full attention and to other implementations, measured in one run."""
