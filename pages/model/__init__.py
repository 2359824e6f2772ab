"""The Model page: what happens to a language model if another attention variant replaces its softmax attention."""
