"""Each variant's own file holds a short definition that is independent of the variant's fast algorithm."""

import ast
import dis
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType

import pytest

import attention_core as ac
from attention_core.variant import Variant

FAMILIES = ("dense", "sparse", "low_rank", "cache", "mixed")
"""The families whose variants are all defined in their own files."""
LONGEST = 18
"""Lines of a definition, not counting its signature and docstring."""
HELPERS = (
    "attention_core.ops.blocks.key_blocks.scorer",
    "attention_core.ops.linear.features",
    "attention_core.ops.linear.gates",
    "attention_core.ops.low_rank.landmarks",
    "attention_core.ops.low_rank.pooling",
    "attention_core.ops.lsh.hash_buckets",
    "attention_core.ops.lsh.hash_sizes",
    "attention_core.ops.random",
    "attention_core.ops.softmax.masked",
)
"""The functions and modules of ``attention_core`` that a definition may call, next to the functions of its own file."""

VARIANTS = [variant for variant in ac.all_variants() if variant.family in FAMILIES]


def definition(variant: Variant) -> Callable[..., object]:
    return variant.definition or variant.weights


def called(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the function and every function of ``attention_core`` that it names, directly or through its own file."""
    seen, left = set(), [function]
    while left:
        here = left.pop()
        if here in seen:
            continue
        seen.add(here)
        yield here
        if here.__module__ == function.__module__:
            found = named(here.__code__, here.__globals__)
            left += [f for f in found if isinstance(f, FunctionType) and f.__module__.startswith("attention_core")]


def named(code: CodeType, scope: dict[str, object]) -> Iterator[object]:
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
            yield from named(constant, scope)


def test_a_call_through_a_module_and_in_a_comprehension_is_found():
    def function(x: object) -> list[object]:
        return [ast.dump(each) for each in (x, inspect.cleandoc("")) if x.getdoc]

    found = list(named(function.__code__, globals()))
    assert ast.dump in found
    assert inspect.cleandoc in found
    assert inspect.getdoc not in found


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_file_holds_its_definition(variant: Variant):
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
    for function in called(definition(variant)):
        assert function is not variant.attend, "the definition calls attend"
        name = f"{function.__module__}.{function.__name__}"
        assert name.startswith(tuple(f"{helper}." for helper in (own, *HELPERS))) or name in HELPERS, f"calls {name}"
