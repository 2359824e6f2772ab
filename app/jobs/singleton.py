"""A decorator for functions that create an object once per process, on first use, and return it to all visitors."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")


def cached_singleton(create: Callable[[*Arguments], T]) -> Callable[[*Arguments], T]:
    """Return a thread-safe function that calls ``create`` once for each tuple of arguments and caches the result.

    The arguments must be positional and have few distinct values, because results are never evicted. Errors are not
    cached. ``st.cache_resource`` would take 0.1 ms per call, and a page run makes dozens of these calls.
    """
    instances: dict[tuple[object, ...], T] = {}
    lock = threading.Lock()

    @wraps(create)
    def get(*args: *Arguments) -> T:
        if args not in instances:
            with lock:
                if args not in instances:
                    instances[args] = create(*args)
        return instances[args]

    get.instances = instances  # type: ignore[attr-defined]  # A test reads all these objects.
    return get
