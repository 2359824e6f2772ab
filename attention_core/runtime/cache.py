"""A thread-safe, byte-bounded LRU cache that computes each key once, and a wrapper that makes results read-only."""

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
"""Bytes of a cache entry itself: the key's hash, two pointers, and the pair of result and size."""


class ByteLRUCache(Generic[T]):
    """A thread-safe LRU cache bounded by bytes. It always keeps the most recent result.

    Args:
        most_bytes: the largest total size of results and their keys.
        size: returns the bytes of a result.
        most: the largest number of results; None for no limit.

    Attributes:
        held: the bytes of all entries.
    """

    def __init__(self, most_bytes: int, size: Callable[[T], int], *, most: int | None = None) -> None:
        self.most_bytes, self._most, self._size = most_bytes, most, size
        self._entries: dict[Hashable, tuple[T, int]] = {}
        self._pending: dict[Hashable, Future[T]] = {}
        self.held = 0
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> T | None:
        """Return a cached result, or None if it is not cached or is still being computed."""
        with self._lock:
            found = self._entries.pop(key, None)
            if found is None:
                return None
            self._entries[key] = found
            return found[0]

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a cached result, or that of ``make``; concurrent callers of one key share one computation or error."""
        with self._lock:
            if key in self._entries:
                found = self._entries[key] = self._entries.pop(key)
                return found[0]
            computes = key not in self._pending
            future = self._pending.setdefault(key, Future())
        if computes:
            try:
                result = make()
                size = ENTRY + _key_bytes(key) + self._size(result)
            except BaseException as error:
                with self._lock:
                    self._finish(key, future)
                future.set_exception(error)
            else:
                with self._lock:
                    if self._finish(key, future):
                        self._entries[key] = result, size
                        self.held += size
                        self._make_room()
                future.set_result(result)
        try:
            return future.result()
        finally:
            # If ``result`` raises, the traceback of the error refers to this frame. If the frame also referred to the
            # future, which holds the error, this cycle would keep all frames of the traceback in memory.
            del future

    def _finish(self, key: Hashable, future: Future[T]) -> bool:
        """Remove an ended computation.

        Return False if ``drop`` was called meanwhile, so its result must not be cached.
        """
        is_current = self._pending.get(key) is future
        if is_current:
            del self._pending[key]
        return is_current

    def drop(self, key: Hashable) -> None:
        """Remove a result, so that it is computed again on the next request."""
        with self._lock:
            self._pending.pop(key, None)
            if key in self._entries:
                self.held -= self._entries.pop(key)[1]

    def _make_room(self) -> None:
        while len(self._entries) > 1 and (self.held > self.most_bytes or len(self._entries) > (self._most or math.inf)):
            self.held -= self._entries.pop(next(iter(self._entries)))[1]


def digest(spec: object) -> bytes:
    """Return a short hash of a frozen spec for use in a cache key; different specs have different hashes.

    Args:
        spec: an object whose repr contains all of its content.
    """
    return blake2b(repr(spec).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _key_bytes(part: Hashable) -> int:
    if isinstance(part, type):
        return 0  # A class in a key takes no additional memory.
    return sys.getsizeof(part) + (sum(map(_key_bytes, part)) if isinstance(part, tuple) else 0)


class Frozen(Generic[T]):
    """A result that callers can share, as its arrays are read-only.

    Args:
        value: a frozen dataclass, an array, or a tuple of these; its arrays are made read-only.

    Attributes:
        nbytes: the bytes of the result in memory, including the objects around its arrays.
    """

    def __init__(self, value: T) -> None:
        self.value = value
        self.nbytes = _bytes(value, set())
        for array in _arrays(value):
            array.flags.writeable = False


def _bytes(value: object, counted: set[int]) -> int:
    """Return the memory of an object and its parts, each counted once. It is several times the pickled length.

    Callables count zero bytes: variants, functions and classes exist in any case.
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
    # ``sys.getsizeof`` of a dataclass without slots leaves out the pointers to its fields, 8 bytes each.
    pointers = 8 * len(parts) if is_dataclass(value) and not hasattr(type(value), "__slots__") else 0
    return sys.getsizeof(value) + pointers + sum(_bytes(part, counted) for part in parts)


def _arrays(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _arrays(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))
