"""Tests that the examples in docstrings and in both README files run."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import attention_core

ROOT = Path(__file__).parent.parent.parent
MODULES = [
    "attention_core.comparison",
    "attention_core.inputs.record",
    "attention_core.inputs.source",
    "attention_core.inputs.synthetic",
    "attention_core.inputs.tensors",
    "attention_core.registry",
    "attention_core.settings",
    "attention_core.sweeping",
    "attention_core.variant",
    "attention_lab.notebook",
    "attention_lab.plot",
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


def test_the_functions_and_classes_that_most_programs_use_have_an_example():
    names = {example.name.rpartition(".")[2] for example in EXAMPLES}
    wanted = {"Attention", "all_variants", "compare", "from_word", "get", "help", "param", "sweep", "show", "variant"}
    wanted |= {"error", "entropy", "matrix", "from_tensors", "from_synthetic", "SyntheticSource", "of"}
    assert not wanted - names


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


def test_every_public_object_has_a_docstring():
    assert not [name for name in attention_core.__all__ if not (getattr(attention_core, name).__doc__ or "").strip()]
