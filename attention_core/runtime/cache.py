"""What was made once for all who ask, kept as long as there is room for its bytes, and never changed."""

import math
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")

ENTRY = 256
"""Bytes of a place among what is kept: its hash and its two pointers, and the pair of a result and its size."""


class ByteLRUCache(Generic[T]):
    """Results by what they answer; those last asked for are kept, and the last one in any case.

    Args:
        most_bytes: of all that are kept, with what each of them was asked for by.
        size: bytes of a result.
        most: how many are kept, however small.

    Attributes:
        held: bytes kept.
    """

    def __init__(self, most_bytes: int, size: Callable[[T], int], *, most: int | None = None) -> None:
        self.most_bytes, self._most, self._size = most_bytes, most, size
        self._kept: dict[Hashable, tuple[T, int]] = {}
        self._making: dict[Hashable, Future[T]] = {}
        self.held = 0
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> T | None:
        """A result that is kept; None where there is none, or it is still being made."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return None
            self._kept[key] = found
            return found[0]

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A result; who asks while another makes it waits for that, and is told the same error."""
        with self._lock:
            if key in self._kept:
                found = self._kept[key] = self._kept.pop(key)
                return found[0]
            first = key not in self._making
            future = self._making.setdefault(key, Future())
        if first:
            try:
                result = make()
            except BaseException as error:
                with self._lock:
                    self._is_made(key, future)
                future.set_exception(error)
            else:
                size = ENTRY + _key_bytes(key) + self._size(result)
                with self._lock:
                    if self._is_made(key, future):
                        self._kept[key] = result, size
                        self.held += size
                        self._make_room()
                future.set_result(result)
        try:
            return future.result()
        finally:
            # An error holds this frame, which would hold the error: all that its way up computed would stay with them.
            del future

    def _is_made(self, key: Hashable, future: Future[T]) -> bool:
        """Let nobody wait for it any more; whether it is still what is wanted."""
        wanted = self._making.get(key) is future
        if wanted:
            del self._making[key]
        return wanted

    def drop(self, key: Hashable) -> None:
        """Let a result be made anew."""
        with self._lock:
            self._making.pop(key, None)
            if key in self._kept:
                self.held -= self._kept.pop(key)[1]

    def _make_room(self) -> None:
        while len(self._kept) > 1 and (self.held > self.most_bytes or len(self._kept) > (self._most or math.inf)):
            self.held -= self._kept.pop(next(iter(self._kept)))[1]


def digest(spec: object) -> bytes:
    """What stands for a frozen spec in a key, however long the text in it: two that differ have two.

    Args:
        spec: whose repr says all of it.
    """
    return blake2b(repr(spec).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _key_bytes(part: Hashable) -> int:
    if isinstance(part, type):
        return 0  # there anyway
    return sys.getsizeof(part) + (sum(map(_key_bytes, part)) if isinstance(part, tuple) else 0)


class Frozen(Generic[T]):
    """A result that all may look at at once, as nobody can write to its arrays.

    Args:
        value: a frozen dataclass, an array, or a tuple of such; its arrays are closed to writing here.

    Attributes:
        nbytes: what it holds in memory, arrays and what stands around them.
    """

    def __init__(self, value: T) -> None:
        self.value = value
        self.nbytes = _bytes(value, set())
        for array in _arrays(value):
            array.flags.writeable = False


def _bytes(value: object, counted: set[int]) -> int:
    """What an object and all that it is made of take in memory, each once: several times its pickled length.

    Nothing that is called counts: variants, functions and classes are there anyway.
    """
    if value is None or isinstance(value, bool | type) or callable(value) or id(value) in counted:
        return 0
    counted.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes + sys.getsizeof(value[:0])
    parts: list[object] = []
    if isinstance(value, tuple | list | set | frozenset):
        parts.extend(value)
    elif isinstance(value, Mapping):
        parts.extend(value)
        parts.extend(value.values())
    elif is_dataclass(value):
        parts.extend(getattr(value, field.name) for field in fields(value))
    # Of a dataclass without slots, Python counts its fields' places apart from it.
    places = 8 * len(parts) if is_dataclass(value) and not hasattr(type(value), "__slots__") else 0
    return sys.getsizeof(value) + places + sum(_bytes(part, counted) for part in parts)


def _arrays(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _arrays(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))
