"""Stories: the step-by-step explanations of attention variants on the Inside page, one module per variant.

A module is named after the variant that it explains. The module ``generic`` explains all variants without one.
"""

import importlib
import pkgutil
from functools import cache

import attention_core as ac
from pages.inside.story import Story

GENERIC = "generic"
"""Name of the module that explains variants without their own module."""


@cache
def discover() -> dict[str, Story]:
    """Return the function that builds the steps of each variant, by the variant's key.

    A module may list further variants that share its story in ``ALSO``.
    """
    own: dict[str, Story] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        own |= dict.fromkeys((info.name, *getattr(module, "ALSO", ())), module.steps)
    generic = own.pop(GENERIC)
    return {v.key: own.get(v.key, generic) for v in ac.all_variants() if v.key in own or v.intermediates}
