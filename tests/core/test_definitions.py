"""Each variant's own file holds a short definition that is independent of the variant's fast algorithm."""

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType

import pytest
import torch
from contract import error
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.variant import Attention, Params, Variant

FAMILIES = ("gated", "kernel")
"""The families whose variants are all defined in their own files."""
CHUNKED = ("gated", "kernel")
"""The families whose algorithms take the tokens in chunks."""
LONGEST = 18
"""Lines of a definition, not counting its signature and docstring."""
HELPERS = (
    "attention_core.ops.delta.delta_rule",
    "attention_core.ops.linear.gates",
    "attention_core.ops.random",
    "attention_core.ops.recurrence",
    "attention_core.ops.softmax.masked",
)
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


@st.composite
def settings_of(draw: st.DrawFn, variant: Variant) -> Params:
    """Draw any settings of a variant; numbers are at most 64."""
    drawn = {}
    for s in variant.params.settings():
        if s.kind == "choice":
            drawn[s.name] = draw(st.sampled_from(s.choices))
        elif s.kind == "bool":
            drawn[s.name] = draw(st.booleans())
        else:
            number = st.integers if s.kind == "int" else st.floats
            drawn[s.name] = draw(number(s.low, min(s.high, 64)))
    return variant.params.build(**drawn)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.family in CHUNKED], ids=lambda v: v.key)
@given(data=st.data())
@settings(max_examples=30)
def test_each_chunked_algorithm_gives_what_its_definition_gives(variant: Variant, data: st.DataObject):
    n = data.draw(st.sampled_from((1, 2, 7, 15, 16, 17, 63, 64, 65, 129, 150, 259)), "n")
    # With d = 1, cosine attention may have nothing to divide by.
    d, d_v = data.draw(st.integers(2, 9), "d"), data.draw(st.integers(1, 7), "d_v")
    a = Attention(variant, data.draw(settings_of(variant), "settings"))
    causal = variant.causal_reason is None and data.draw(st.booleans(), "causal")
    source = torch.Generator().manual_seed(data.draw(st.integers(0, 9), "seed"))
    q, k, v = (torch.randn(n, size, generator=source, dtype=torch.float64) for size in (d, d, d_v))
    outputs = [a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal) @ v]
    defined = variant.definition(q, k, v, a.params, causal=causal) if variant.definition else outputs.pop()
    for found in outputs:
        assert error(found, defined) <= 1e-8
