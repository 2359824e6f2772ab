"""Attention mechanisms side by side: their matrices, their algorithms, their costs.

Shape legend: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size, ``m`` landmarks, features or
rank, ``C`` feature-map size. One layout: ``[..., n, d]``; in a matrix ``[..., n, n]`` rows are queries, columns keys.
"""

from attention_core import inputs, metrics, model_patching
from attention_core.errors import LabError
from attention_core.registry import all_variants, families, from_word, get, variant
from attention_core.variant import Attention, Cost, Paper, Params, Variant, param

surgery = model_patching
"""The earlier name of ``model_patching``."""

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
