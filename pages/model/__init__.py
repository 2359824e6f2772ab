"""The Model page: the effect on a language model of replacing its softmax attention by another variant."""
