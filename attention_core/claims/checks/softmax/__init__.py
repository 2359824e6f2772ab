"""Claims about softmax's memory, entropy and Taylor series, and about the row sums of squared ReLU."""
