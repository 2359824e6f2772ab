"""A library of attention mechanisms: their attention matrices, algorithms, costs and the metrics to compare them.

Shape legend: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size, ``m`` landmarks, features or
rank, ``C`` feature-map size. Tensors have shape ``[..., n, d]``. In a matrix ``[..., n, n]``, rows are queries and
columns are keys.
"""

from attention_core import inputs, metrics, model_patching
from attention_core.errors import LabError
from attention_core.registry import all_variants, families, from_word, get, variant
from attention_core.variant import Attention, Cost, Paper, Params, Variant, param

surgery = model_patching
"""Alias of ``model_patching``, kept for code that uses the earlier name."""

__all__ = [
    "Attention",
    "Cost",
    "LabError",
    "Paper",
    "Params",
    "Variant",
    "all_variants",
    "families",
    "from_word",
    "get",
    "inputs",
    "metrics",
    "model_patching",
    "param",
    "surgery",
    "variant",
]
