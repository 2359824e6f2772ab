"""The Picture page: what attention variants do to a noisy photograph, or to a digit that a trained model reads."""
