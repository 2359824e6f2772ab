"""What a process has one of for all its visitors, made when it is first asked for."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(make: Callable[P, T]) -> Callable[P, T]:
    """Call a function once for each of its arguments, however many threads ask at a time; an error is not kept.

    ``st.cache_resource`` takes a tenth of a millisecond at each call, and a run asks dozens of times whose turn it is.

    Args:
        make: takes arguments by their places, as many of them as there are things of which one is enough.
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

    get.lasting = made  # type: ignore[attr-defined]  # so that a test finds all that live as long as the process
    return get
