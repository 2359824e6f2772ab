"""A library that computes attention matrices, outputs, costs and metrics of attention mechanisms (variants).

Shape legend: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size, ``m`` landmarks, random
features or rank, ``C`` size of the vector that a feature map gives for one token. Tensors have shape ``[..., n, d]``.
In a matrix ``[..., n, n]``, rows are queries and columns are keys.

The library needs torch and numpy. Language models need the optional packages of ``attention-lab[models]``, and the
functions ``show`` and ``plot`` need those of ``attention-lab[notebook]``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from attention_core import inputs, metrics, model_patching
from attention_core.attention import Attention
from attention_core.errors import LabError
from attention_core.inputs.record import QKV
from attention_core.registry import all_variants, families, from_word, get, variant
from attention_core.variant import Cost, Paper, Params, Variant, param

if TYPE_CHECKING:
    from attention_core import claims, experiments
    from attention_core.comparison import Comparison, compare
    from attention_core.sweeping import sweep
    from attention_lab import plot
    from attention_lab.notebook import show

__version__ = "0.1.0"

surgery = model_patching
"""Alias of ``model_patching``, kept for code that uses the earlier name."""

__all__ = [
    "QKV",
    "Attention",
    "Comparison",
    "Cost",
    "LabError",
    "Paper",
    "Params",
    "Variant",
    "all_variants",
    "claims",
    "compare",
    "experiments",
    "families",
    "from_word",
    "get",
    "inputs",
    "metrics",
    "model_patching",
    "param",
    "plot",
    "show",
    "surgery",
    "sweep",
    "variant",
]

_LAZY_NAMES = {
    "Comparison": "attention_core.comparison",
    "compare": "attention_core.comparison",
    "sweep": "attention_core.sweeping",
    "show": "attention_lab.notebook",
}
"""The module of each public function and class that is imported when it is first used."""
_LAZY_MODULES = {
    "claims": "attention_core.claims",
    "experiments": "attention_core.experiments",
    "plot": "attention_lab.plot",
}
"""The public modules that are imported when they are first used."""
_EXTRA_PACKAGES = {"show": ("anywidget", "traitlets"), "plot": ("plotly",)}
"""The packages of the extra ``notebook`` that a public name needs."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - returns a module, a class or a function
    try:
        if name in _LAZY_MODULES:
            return importlib.import_module(_LAZY_MODULES[name])
        if name in _LAZY_NAMES:
            return getattr(importlib.import_module(_LAZY_NAMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name in _EXTRA_PACKAGES.get(name, ()):
            message = f"{name} needs the package {error.name}. Run: pip install 'attention-lab[notebook]'"
            raise ModuleNotFoundError(message, name=error.name) from error
        raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
