"""What was made once for all who ask, kept as long as there is room for its bytes, and never changed."""

import math
import pickle
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class Kept(Generic[T]):
    """Results by what they answer; those last asked for are kept, and the last one in any case.

    Args:
        most_bytes: of all that are kept.
        size: bytes of a result.
        most: how many are kept, however small.

    Attributes:
        held: bytes kept.
    """

    def __init__(self, most_bytes: int, size: Callable[[T], int], *, most: int | None = None) -> None:
        self.most_bytes, self._most, self._size = most_bytes, most, size
        self._kept: dict[Hashable, Future[T]] = {}
        self._sizes: dict[Hashable, int] = {}
        self.held = 0
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> Future[T] | None:
        """A result that is kept; None where there is none, or it is still being made."""
        with self._lock:
            found = self._kept.get(key)
            if found is None or not found.done():
                return None
            self._kept[key] = self._kept.pop(key)
            return found

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A result; who asks while another makes it waits for that, and is told the same error."""
        with self._lock:
            found = self._kept.pop(key, None)
            first = found is None
            future = self._kept[key] = found or Future()
        if first:
            try:
                result = make()
            except BaseException as error:
                with self._lock:
                    if self._kept.get(key) is future:
                        del self._kept[key]
                future.set_exception(error)
            else:
                with self._lock:
                    if self._kept.get(key) is future:
                        self._sizes[key] = self._size(result)
                        self.held += self._sizes[key]
                    future.set_result(result)
                    self._make_room()
        try:
            return future.result()
        finally:
            # An error holds this frame, which would hold the error: all that its way up computed would stay with them.
            del found, future

    def drop(self, key: Hashable) -> None:
        """Let a result be made anew."""
        with self._lock:
            self._kept.pop(key, None)
            self.held -= self._sizes.pop(key, 0)

    def _make_room(self) -> None:
        while len(self._sizes) > 1 and (self.held > self.most_bytes or len(self._sizes) > (self._most or math.inf)):
            oldest = next(key for key in self._kept if key in self._sizes)
            del self._kept[oldest]
            self.held -= self._sizes.pop(oldest)


class Frozen(Generic[T]):
    """A result that all may look at at once, as nobody can write to its arrays.

    Args:
        value: a frozen dataclass, an array, or a tuple of such; its arrays are closed to writing here.

    Attributes:
        nbytes: what it holds.
    """

    def __init__(self, value: T) -> None:
        self.value = value
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(value, 5, buffer_callback=arrays.append)
        self.nbytes = len(rest) + sum(array.raw().nbytes for array in arrays)
        for array in _arrays(value):
            array.flags.writeable = False


def _arrays(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list | Mapping):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _arrays(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))
