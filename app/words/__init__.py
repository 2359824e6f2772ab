"""Texts on screen: their translation, the names of variants and tokens, and the safe display of visitors' words."""
