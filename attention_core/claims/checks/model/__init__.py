"""Claims about a trained model in which a variant replaces softmax."""
