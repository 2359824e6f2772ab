"""Tests that each variant's file holds a short definition that is independent of the variant's fast algorithm."""

import ast
import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType

import pytest
import torch
from contract import any_settings, error
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.attention import Attention
from attention_core.variant import Variant, hooks

CHUNKED = ("gated", "kernel", "mixed")
"""The families whose algorithms process the tokens in chunks."""
LONGEST = 18
"""Lines of a definition, not counting its signature and docstring."""
HELPERS = (
    "attention_core.ops.blocks.key_blocks.block_scorer",
    "attention_core.ops.delta.delta_rule.normalise",
    "attention_core.ops.delta.delta_rule.unit_vectors",
    "attention_core.ops.delta.delta_rule.update_strengths",
    "attention_core.ops.delta.delta_rule.beta_from_strength",
    "attention_core.ops.delta.delta_rule.write_strengths",
    "attention_core.ops.linear.features",
    "attention_core.ops.delta.gates",
    "attention_core.ops.low_rank.landmarks",
    "attention_core.ops.low_rank.pooling",
    "attention_core.ops.lsh.hash_buckets",
    "attention_core.ops.lsh.hash_sizes",
    "attention_core.ops.random",
    "attention_core.ops.delta.fast_weights.each_token",
    "attention_core.ops.softmax.masked",
)
"""The functions and modules of ``attention_core`` that a definition may call, next to the functions of its own file."""

VARIANTS = ac.all_variants()


def definition(variant: Variant) -> Callable[..., object]:
    return variant.definition or variant.weights


def called_functions(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the function and every function of ``attention_core`` that it names, directly or through its own file."""
    seen, left = set(), [function]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        yield here
        if here.__module__ == function.__module__:
            found = named_objects(here.__code__, here.__globals__)
            left += [f for f in found if isinstance(f, FunctionType) and f.__module__.startswith("attention_core")]


def named_objects(code: CodeType, scope: dict[str, object]) -> Iterator[object]:
    """Yield the objects that a function's code names: globals and attributes of modules, also in nested functions."""
    last: object = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            last = scope.get(step.argval)
        else:
            last = getattr(last, str(step.argval), None) if isinstance(last, ModuleType) else None
        yield last
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from named_objects(constant, scope)


def test_calls_through_modules_and_in_comprehensions_are_detected():
    def function(x: object) -> list[object]:
        return [ast.dump(each) for each in (x, inspect.cleandoc("")) if x.getdoc]

    found = list(named_objects(function.__code__, globals()))
    assert ast.dump in found
    assert inspect.cleandoc in found
    assert inspect.getdoc not in found


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_variant_file_contains_its_definition(variant: Variant):
    own = f"attention_core.variants.{variant.family}.{variant.key}"
    assert definition(variant).__module__ == own, f"define {variant.key} in its own file"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_definition_is_short(variant: Variant):
    (function,) = ast.parse(variant.definition_code()).body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[ast.get_docstring(function) is not None]
    lines = (function.end_lineno or 0) - first.lineno + 1
    assert lines <= LONGEST, f"{lines} lines"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_definition_is_independent_of_the_fast_algorithm(variant: Variant):
    own = definition(variant).__module__
    for function in called_functions(definition(variant)):
        assert function is not variant.attend, "the definition calls attend"
        name = f"{function.__module__}.{function.__name__}"
        assert name.startswith(tuple(f"{helper}." for helper in (own, *HELPERS))) or name in HELPERS, f"calls {name}"


def unused_functions(source: str) -> set[str]:
    """Return the functions of a variant's file that are neither hooks nor used in the file."""
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):  # mask, primitives = mask_and_primitives(rule_masks)
            functions |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and name.id.islower()}
    return functions - used - {*hooks()}


def test_a_misspelt_hook_is_detected():
    for key, right, wrong in (("linear", "def anatomy(", "def anatmy("), ("local", "primitives =", "primitves =")):
        source = ac.variant(key).source_code()
        assert unused_functions(source) == set()
        assert unused_functions(source.replace(right, wrong)) == {wrong.removeprefix("def ").rstrip("( =")}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_function_is_a_hook_or_is_used_in_its_file(variant: Variant):
    assert unused_functions(variant.source_code()) == set()
    for name, value in vars(sys.modules[variant.module]).items():
        if name in hooks():
            assert getattr(variant, name) is value, f"{name} has the name of a hook, but the variant uses another"


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.family in CHUNKED], ids=lambda v: v.key)
@given(data=st.data())
@settings(max_examples=30)
def test_each_chunked_algorithm_equals_its_definition(variant: Variant, data: st.DataObject):
    n = data.draw(st.sampled_from((1, 2, 7, 15, 16, 17, 63, 64, 65, 129, 150, 259)), "n")
    # With d = 1, the denominator of cosine attention may be zero.
    d, d_v = data.draw(st.integers(2, 9), "d"), data.draw(st.integers(1, 7), "d_v")
    a = Attention(variant, data.draw(any_settings(variant), "settings"))
    causal = variant.causal_reason is None and data.draw(st.booleans(), "causal")
    source = torch.Generator().manual_seed(data.draw(st.integers(0, 9), "seed"))
    q, k, v = (torch.randn(n, size, generator=source, dtype=torch.float64) for size in (d, d, d_v))
    outputs = [a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal) @ v]
    defined = variant.definition(q, k, v, a.params, causal=causal) if variant.definition else outputs.pop()
    for found in outputs:
        assert error(found, defined) <= 1e-8
