"""Experiments: one module per question, usable without the web app.

An experiment is a list of independent frozen tasks and a pure function from a task to rows. Progress bars, cancelling,
streaming charts, caching and remote execution then need no extra code. Each such module has

- ``tasks(...) -> tuple[Task, ...]``, with the most useful results first;
- ``run(task, *, load=load) -> Sequence[Row]``, whose random seeds depend on the task only.
"""

import importlib
import pkgutil
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Import the module of an experiment when it is first used."""
    if name not in {module.name for module in pkgutil.iter_modules(__path__)}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
