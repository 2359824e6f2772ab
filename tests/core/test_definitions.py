"""Each variant's own file holds a short definition that is independent of the variant's fast algorithm."""

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType

import pytest

import attention_core as ac
from attention_core.variant import Variant

FAMILIES: tuple[str, ...] = ()
"""The families whose variants are all defined in their own files."""
LONGEST = 18
"""Lines of a definition, not counting its signature and docstring."""
HELPERS = ("attention_core.ops.random", "attention_core.ops.softmax.masked")
"""The modules of ``attention_core`` whose functions a definition may call, next to those of its own file."""

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
            names = (here.__globals__.get(name) for name in (*here.__code__.co_names, *inner_names(here)))
            left += [f for f in names if isinstance(f, FunctionType) and f.__module__.startswith("attention_core")]


def inner_names(function: FunctionType) -> Iterator[str]:
    """Yield the global names that the functions and comprehensions inside a function use."""
    for constant in function.__code__.co_consts:
        if inspect.iscode(constant):
            yield from constant.co_names


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
        assert function.__module__ in (own, *HELPERS), f"the definition calls {function.__module__}.{function.__name__}"
