"""Tests that pyproject.toml and the Dockerfile require every imported library, in versions that are tested."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import attention_core
from app.streamlit_patches.patches import STREAMLIT_VERSION

ROOT = Path(__file__).parent.parent
OWN = ("app", "attention_core", "attention_lab", "pages")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIRED = [Requirement(each) for each in PROJECT["dependencies"]]
EXTRAS = {name: [Requirement(each) for each in extra] for name, extra in PROJECT["optional-dependencies"].items()}
OPTIONAL = [each for extra in EXTRAS.values() for each in extra if each.name != PROJECT["name"]]


def imported():
    """Return every imported top-level module of other projects, with the first file that imports it."""
    found = {}
    for file in (file for name in OWN for file in sorted((ROOT / name).rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in (name.partition(".")[0] for name in names):
                if name not in sys.stdlib_module_names and name not in OWN:
                    found.setdefault(name, file.relative_to(ROOT).as_posix())
    return found


@cache
def pins():
    """Return the tested version of each package."""
    lines = "\n".join((ROOT / name).read_text() for name in ("requirements.txt", "constraints.txt"))
    return {canonicalize_name(name): pin for name, pin in re.findall(r"^([\w-]+)(?:\[\w+\])?==([\w.]+)", lines, re.M)}


def test_every_imported_package_is_declared():
    declared = {canonicalize_name(each.name) for each in (*REQUIRED, *OPTIONAL)}
    providers = packages_distributions()
    modules = imported()
    assert {"torch", "streamlit", "transformers"} <= modules.keys()
    for module, file in modules.items():
        assert {canonicalize_name(name) for name in providers[module]} & declared, f"{file} imports {module}"


@pytest.mark.parametrize("requirement", [*REQUIRED, *OPTIONAL], ids=str)
def test_a_lower_bound_is_declared_and_the_tested_version_meets_it(requirement):
    assert {each.operator for each in requirement.specifier} & {">=", "=="}
    assert pins()[canonicalize_name(requirement.name)] in requirement.specifier


def test_only_the_patched_version_of_streamlit_is_allowed():
    [streamlit] = [each for each in OPTIONAL if each.name == "streamlit"]
    assert STREAMLIT_VERSION in streamlit.specifier
    assert pins()["streamlit"] == STREAMLIT_VERSION
    major, minor, patch = map(int, STREAMLIT_VERSION.split("."))
    for later in (f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"):
        assert later not in streamlit.specifier


def test_the_image_installs_a_cpu_build_of_torch_by_default():
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^ARG TORCH_BACKEND=(.*)$", text, re.M) == ["cpu"]
    assert f'uv pip install --system --no-cache --torch-backend "$TORCH_BACKEND" torch=={pins()["torch"]} ' in text
    assert 'TORCH_BACKEND: "${TORCH_BACKEND:-cpu}"' in (ROOT / "compose.yaml").read_text()


def test_the_library_itself_needs_only_torch_and_numpy():
    assert {each.name for each in REQUIRED} == {"numpy", "torch"}
    assert [each.extras for each in EXTRAS["app"] if each.name == PROJECT["name"]] == [{"models"}]
    assert "-e .[app]\n" in (ROOT / "requirements.txt").read_text()


def test_the_citation_and_the_changelog_have_the_version_of_the_package():
    assert PROJECT["dynamic"] == ["version"]
    version = attention_core.__version__
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version


def test_the_page_of_the_package_index_has_no_front_matter_and_no_relative_links():
    text = (ROOT / PROJECT["readme"]).read_text()
    assert text.startswith("# Attention Lab\n")
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]*)\)", text))
    for extra in EXTRAS:
        assert f'pip install "attention-lab[{extra}]"' in text
