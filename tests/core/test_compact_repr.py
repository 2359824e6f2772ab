"""Tests that records with arrays of any size print in one line."""

import dataclasses
import importlib
import inspect
import pkgutil

import numpy as np
import torch

import attention_core as ac
from attention_core.analysis.masks.stack import Reach
from attention_core.analysis.matrix.influence import influence
from attention_core.compact_repr import CompactRepr
from attention_core.inputs.source import first_tokens


def test_a_record_prints_on_one_line():
    qkv = ac.inputs.from_text("the cat saw the dog", model="minilm", layer=3)
    assert repr(qkv) == f"QKV({qkv.origin!r}, 12 heads × 7 tokens × 32, causal=False, 0 notices)"
    assert repr(first_tokens(qkv, 3)).endswith("× 3 tokens × 32, causal=False, 1 notice)")
    long = dataclasses.replace(qkv, v=torch.zeros(12, 7, 5), origin="x" * 10_000, causal=True)
    assert repr(long).endswith("12 heads × 7 tokens × 32 (values 5), causal=True, 0 notices)")
    assert len(repr(long)) < 200


def test_a_result_prints_its_arrays_by_type_and_shape():
    found = influence(ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=6, heads=1)), ac.get("local"), head=0)
    assert repr(found) == "Influence(moved=float32[6, 6], causal=True)"
    reach = Reach(first=np.zeros((900, 900), np.int16), shares=tuple(range(900)), complete=None)
    assert len(repr(reach)) < 150
    assert "first=int16[900, 900]" in repr(reach)


def records():
    for module in pkgutil.walk_packages(ac.__path__, "attention_core."):
        if not module.name.endswith("__main__"):
            loaded = importlib.import_module(module.name)
            yield from (c for c in vars(loaded).values() if inspect.isclass(c) and c.__module__ == module.name)


def test_records_with_arrays_have_a_short_repr():
    holding = set()
    for record in filter(dataclasses.is_dataclass, records()):
        kinds = [str(field.type) for field in dataclasses.fields(record) if field.repr]
        if any(("Tensor" in kind or "ndarray" in kind) and "Callable" not in kind for kind in kinds):
            holding.add(record)
            assert record.__repr__ is CompactRepr.__repr__ or record in (ac.inputs.QKV, ac.Comparison), record
    assert len(holding) > 5
