"""Claims about attention over the pixels of an image."""
