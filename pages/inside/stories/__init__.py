"""Stories: one module per variant, named by the variant's key and discovered by listing this package."""

import importlib
import pkgutil
from functools import cache

from pages.inside.story import Story


@cache
def discover() -> dict[str, Story]:
    """Return the ``steps`` function of every story, by the key of its variant."""
    names = [info.name for info in pkgutil.iter_modules(__path__)]
    return {name: importlib.import_module(f"{__name__}.{name}").steps for name in names}
