"""One file per variant that can be taken apart, named by its key; found by walking the folder."""

import importlib
import pkgutil
from functools import cache

from pages.inside.story import Story


@cache
def discover() -> dict[str, Story]:
    """Every story by its variant's key."""
    names = [info.name for info in pkgutil.iter_modules(__path__)]
    return {name: importlib.import_module(f"{__name__}.{name}").steps for name in names}
