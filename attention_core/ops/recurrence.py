"""A helper for definitions that are written as a loop over tokens."""

from collections.abc import Iterator

from torch import Tensor


def each_token(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the rows of tensors ``[..., n, *]`` token by token, ``[..., 1, *]`` each."""
    yield from zip(*(x.split(1, -2) for x in tensors), strict=True)
