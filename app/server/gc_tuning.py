"""Settings of Python's garbage collector: full collections are rare and skip objects that live as long as the process.

By default, Streamlit runs a full collection after every run of a page (``runner.postScriptGC``), and no visitor is
served meanwhile. With these settings, Python itself decides when to collect. Imports, models and caches are excluded
from collections, because most objects belong to them, and scanning them never frees anything.
"""

import gc
import time

from app.server import malloc

FULL_COLLECTION_THRESHOLD = 100
"""Number of collections of generation 1 before a full one (``gc.set_threshold``).

With Python's default of 10, a full collection would come every fifty runs of a page. With a hundred sessions, it would
block the interpreter for a tenth of a second, to free the few sessions that have ended."""
TRIM_INTERVAL = 3.0
"""Seconds after which free memory is returned to the system even without a full collection. Freed arrays leave unused
memory in the heap, but do not cause collections."""

_last_trim = -TRIM_INTERVAL
_frozen_names: set[str] = set()


def freeze_objects(name: str) -> None:
    """Exclude all live objects from later collections; do nothing if called again with the same name.

    The collector never scans these objects again. Parts of live sessions that only a collection could free therefore
    stay allocated, so the names must come from a bounded set. Call it with a page's name after the page's first run.
    """
    if name in _frozen_names:
        return
    _frozen_names.add(name)
    if _trim_after_collection not in gc.callbacks:
        gc.callbacks.append(_trim_after_collection)
    gc.set_threshold(*gc.get_threshold()[:2], FULL_COLLECTION_THRESHOLD)
    gc.collect()
    gc.freeze()


def _trim_after_collection(phase: str, info: dict[str, int]) -> None:
    """Return free memory to the system after each full collection.

    Memory is also returned after a collection of generation 1 if this last happened over ``TRIM_INTERVAL`` seconds
    ago. Returning memory takes some milliseconds. ``gc.callbacks`` documents the arguments.
    """
    global _last_trim
    if phase == "stop" and info["generation"]:
        now = time.monotonic()
        if info["generation"] == 2 or now - _last_trim > TRIM_INTERVAL:
            malloc.trim_heap()
            _last_trim = now
