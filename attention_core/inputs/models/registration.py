"""Registers this library's attention function with transformers, under the name ``attention_lab_record``.

Importing transformers' models takes seconds, so this library does not import them for the registration. It registers
the function right after the program itself imports them.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MODELS = "transformers.modeling_utils"
"""The module with transformers' attention interface, imported by all of its models."""
RECORDER = "attention_core.inputs.models.recorder"
"""The module that registers the attention function when it is imported."""


def register() -> None:
    """Register the attention function now if transformers' models are imported, or else right after their import."""
    if MODELS in sys.modules:
        importlib.import_module(RECORDER)
    else:
        sys.meta_path.insert(0, _AfterModels())


class _AfterModels(MetaPathFinder):
    """An import hook that finds the module ``MODELS`` as usual, once, and imports ``RECORDER`` after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != MODELS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                importlib.import_module(RECORDER)

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
