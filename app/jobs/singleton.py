"""A decorator for objects that a process creates once for all visitors, on first use."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def cached_singleton(make: Callable[P, T]) -> Callable[P, T]:
    """Return a function that calls ``make`` once per arguments, also with many threads; errors are not cached.

    ``st.cache_resource`` takes 0.1 ms per call, and a page run makes dozens of these calls.

    Args:
        make: a function with few distinct positional arguments.
    """
    made: dict[tuple[object, ...], T] = {}
    lock = threading.Lock()

    @wraps(make)
    def get(*args: P.args, **kwargs: P.kwargs) -> T:
        if args not in made:
            with lock:
                if args not in made:
                    made[args] = make(*args, **kwargs)
        return made[args]

    get.lasting = made  # type: ignore[attr-defined]  # lets a test find all objects that live as long as the process
    return get
