"""Tests that the examples in docstrings and in both README files run."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import attention_core

ROOT = Path(__file__).parent.parent.parent
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder in ("attention_core", "attention_lab")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
EXAMPLES = [
    test
    for name in MODULES
    for test in doctest.DocTestFinder().find(importlib.import_module(name), globs={})
    if test.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_of_a_docstring_runs(example):
    assert not [each for each in example.examples if each.options], "an example is not run"
    assert doctest.DocTestRunner().run(example).failed == 0


def test_every_public_name_has_an_example():
    without = [name for name in attention_core.__all__ if ">>> " not in getattr(attention_core, name).__doc__]
    assert not without
    names = {example.name.rpartition(".")[2] for example in EXAMPLES}
    assert {"error", "entropy", "matrix", "from_tensors", "from_synthetic", "SyntheticSource", "of"} <= names


@pytest.mark.parametrize("module", ["claims", "inputs", "metrics", "model_patching"])
def test_every_function_and_source_of_a_public_module_has_an_example(module):
    public = {name: getattr(getattr(attention_core, module), name) for name in getattr(attention_core, module).__all__}
    used = "".join(each.source for example in EXAMPLES for each in example.examples)
    names = {name for name, each in public.items() if inspect.isfunction(each) or name.endswith("Source")}
    assert not {name for name in names - {"Source"} if not re.search(rf"\b{name}\b", used)}
    assert names


@pytest.mark.parametrize(
    ("file", "start"), [("README.md", "<!-- library -->"), ("attention_core/README.md", "## Use it as a library")]
)
def test_the_example_of_a_readme_runs(file, start):
    text = (ROOT / file).read_text()
    code = re.search(r"```python\n(.*?)```", text[text.index(start) :], re.DOTALL)[1]
    names = {}
    exec(compile(code, file, "exec"), names)
    assert names["out"].shape == (4, 128, 32)
    assert list(names["found"].matrices) == ["softmax", "nystrom~landmarks~64", "linear"]
