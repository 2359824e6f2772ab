"""When garbage is collected: rarely, as nobody else is served meanwhile, and never again in what stays for good.

Streamlit would collect everything after every run (``runner.postScriptGC``). Python's own generations do it instead,
from which imports, models and caches are taken out: most of all objects, and every pass over them would be in vain.
"""

import gc
import time

from app.server import malloc

OLD = 100
"""Passes over what is young before one over everything. Python's own 10 is every fifty runs: with a hundred sessions a
tenth of a second under the lock, for the few that have gone."""
BETWEEN = 3.0
"""Seconds after which what is free is given back whatever was collected: holes that arrays leave are no garbage."""

_given_back = -BETWEEN
_settled: set[str] = set()


def settle(what: str) -> None:
    """Take what there is now out of all later collections, once for each of a bounded number of names.

    Whatever is alive then is never looked through again: of the sessions among it those parts that only a collection
    could free stay. So this is for names of pages, after a page has run for the first time in this process.

    Args:
        what: was just loaded.
    """
    if what in _settled:
        return
    _settled.add(what)
    if _after not in gc.callbacks:
        gc.callbacks.append(_after)
    gc.set_threshold(*gc.get_threshold()[:2], OLD)
    gc.collect()
    gc.freeze()


def _after(phase: str, info: dict[str, int]) -> None:
    """Give back what is free, for some milliseconds: after each pass over everything, else now and then."""
    global _given_back
    if phase == "stop" and info["generation"]:
        now = time.monotonic()
        if info["generation"] == 2 or now - _given_back > BETWEEN:
            malloc.give_back()
            _given_back = now
