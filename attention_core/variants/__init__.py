"""The attention variants, one file per variant, in one folder per family. The registry finds a new file by itself.

The functions ``weights``, ``attend``, ``cost`` and so on have the arguments that ``attention_core.variant.Variant``
states for them. Everywhere, ``p`` is the settings, ``n`` the number of tokens, ``d`` the head size and ``keys`` the
number of keys if it differs from n. A block, chunk or piece is the part of the tokens that one step computes.
"""
