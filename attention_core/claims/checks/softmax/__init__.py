"""Claims about softmax's memory, entropy and Taylor series, and about the number that divides squared ReLU's rows."""
