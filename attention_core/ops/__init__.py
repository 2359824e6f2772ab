"""Algorithms that several variants share. They import no variant and no registry.

Docstrings leave out the arguments that mean the same everywhere:

- ``q``: queries, ``[..., n, d]``. ``k``: keys, ``[..., n, d]``. ``v``: values, ``[..., n, d_v]``.
- ``causal``: whether query i attends to keys 0..i only.
- ``n``: number of tokens. ``d``: head size. ``d_v``: size of values. ``keys``: number of keys, None for n.
- ``features``: size C of the features.
- ``like``: queries ``[X, n, d]`` of which only the sizes, the type and the device are used.
- ``backward``: whether memory is also needed for the keys' gradients.
- ``p``: the variant's settings. ``seed``: the visitor's seed.
"""
