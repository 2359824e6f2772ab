"""Tests of the project's structure, such as import rules: ``pages`` -> ``app`` -> ``attention_core``, never back."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [p for top in ("app", "attention_core", "pages") for p in sorted((ROOT / top).rglob("*.py"))]

SHARED = ("__init__.py", "task.py", "lengths.py")
"""Files that experiments share: the definition of a task, and the lengths to measure at."""
SCREEN = [path for path in FILES if path.relative_to(ROOT).parts[0] != "attention_core"]
CORE = [
    path
    for pattern in ("analysis/**/*.py", "experiments/*.py")
    for path in sorted((ROOT / "attention_core").glob(pattern))
    if path.name not in SHARED
]


def imported(path):
    """Return every module that a file imports; ``from a import b`` counts as both ``a`` and ``a.b``."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imports_at_load(path, modules):
    """Return the project's modules that a file imports when it is loaded, without later imports and those for types."""
    names = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            each = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name if name in modules else node.module for name in each]
    return {name for name in names if name in modules}


def modules_on_cycles(needs):
    """Return the modules on an import cycle and those that need one; the result is empty without a cycle.

    Modules that need no remaining module are removed until none can be removed.
    """
    remaining = dict(needs)
    while free := [name for name, modules in remaining.items() if not modules & remaining.keys() - {name}]:
        for name in free:
            del remaining[name]
    return set(remaining)


def test_files_have_no_import_cycles():
    modules = {}
    for path in FILES:
        place = path.relative_to(ROOT).with_suffix("")
        modules[".".join(place.parent.parts if place.name == "__init__" else place.parts)] = path
    assert not modules_on_cycles({name: imports_at_load(path, modules) for name, path in modules.items()})


def test_import_cycles_are_detected():
    assert modules_on_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == {"a", "b", "c", "d"}
    assert not modules_on_cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def forbidden(path):
    """Return the modules that a file must not import."""
    place = path.relative_to(ROOT).as_posix()
    rules = {
        "attention_core/": ("app", "pages", "streamlit", "plotly"),
        "app/": ("pages", "app.main", "app.streamlit_app"),
        "app/figures/": ("streamlit", "torch", "attention_core", "app.jobs.cached"),
        "pages/": ("torch", "plotly", "attention_core.variants"),
    }
    return {name for prefix, names in rules.items() if place.startswith(prefix) for name in names}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_import_only_allowed_modules(path):
    known = imported(path)
    broken = {name for name in known for no in forbidden(path) if name == no or name.startswith(no + ".")}
    if path.is_relative_to(ROOT / "app" / "figures"):  # Figures may use the number formats.
        broken = {name for name in broken if not name.startswith("attention_core.formatting")}
    assert not broken


LAYERS = {
    "attention_core/ops/": ("ops", "settings", "compact_repr", "errors"),
    "attention_core/variants/": ("ops", "variant", "settings", "limits", "articles"),
}
"""The modules of ``attention_core`` that operators and variants may import; a variant imports no other variant."""
BUILDS_VARIANTS = "attention_core/ops/delta/fast_weights.py"
"""The one operator that imports ``attention_core.variant``: it builds the records of several variants."""


def disallowed_imports(place, known):
    """Return the modules of the core that an operator or a variant at this place imports although it may not."""
    allowed = [
        f"attention_core.{name}" for prefix, names in LAYERS.items() if place.startswith(prefix) for name in names
    ]
    if place == BUILDS_VARIANTS:
        allowed.append("attention_core.variant")
    core = {name for name in known if name.startswith("attention_core.")}
    return {name for name in core if not f"{name}.".startswith(tuple(f"{module}." for module in allowed))}


@pytest.mark.parametrize(
    "place", [p for p in (path.relative_to(ROOT).as_posix() for path in FILES) if p.startswith(tuple(LAYERS))]
)
def test_operators_import_no_variant_and_variants_import_no_other_variant(place):
    assert not disallowed_imports(place, imported(ROOT / place))


def test_an_import_of_another_variant_is_detected():
    softmax = "attention_core.variants.dense.softmax"
    assert disallowed_imports("attention_core/variants/dense/alibi.py", {softmax}) == {softmax}
    assert disallowed_imports("attention_core/ops/lsh.py", {softmax, "attention_core.variant"}) == {
        softmax,
        "attention_core.variant",
    }
    assert not disallowed_imports("attention_core/variants/dense/alibi.py", {"attention_core.variant", "torch"})


def test_forbidden_imports_are_detected(tmp_path):
    assert "streamlit" in forbidden(ROOT / "attention_core" / "variant.py")
    assert {"torch", "plotly"} <= forbidden(ROOT / "pages" / "matrices.py")
    bad = tmp_path / "bad.py"
    bad.write_text("from plotly import graph_objects\nimport torch.nn\n")
    assert {"plotly", "plotly.graph_objects", "torch.nn"} <= imported(bad)


def page_of(path):
    """Return the page that a file belongs to, or None outside the pages' folders."""
    place = path.relative_to(ROOT).parts
    return place[1] if place[0] == "pages" and len(place) > 2 else None


@pytest.mark.parametrize("path", [p for p in FILES if page_of(p)], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_page_imports_another_page(path):
    own = f"pages.{page_of(path)}"
    others = {name for name in imported(path) if name.startswith("pages.") and not f"{name}.".startswith(f"{own}.")}
    assert not others


def runs_as_fragment(page):
    """Return whether a page sets ``runs_as_fragment``: it answers immediately, so a change interrupts no work."""
    tree = ast.parse((ROOT / "pages" / page / "page.py").read_text())
    return any(isinstance(node, ast.keyword) and node.arg == "runs_as_fragment" for node in ast.walk(tree))


PAGES = sorted({page_of(path) for path in FILES} - {None})


@pytest.mark.parametrize("page", [each for each in PAGES if runs_as_fragment(each)])
def test_pages_that_run_as_fragments_start_no_long_runs(page):
    known = {name for path in FILES if page_of(path) == page for name in imported(path)}
    assert "app.jobs.runs" not in known


def test_only_pages_without_sweeps_run_as_fragments():
    assert {"matrices", "masks", "home"} <= {each for each in PAGES if runs_as_fragment(each)}
    assert not {"inside", "entropy", "claims"} & {each for each in PAGES if runs_as_fragment(each)}


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_experiments_define_run_and_analyses_define_no_tasks(path):
    functions = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    if "analysis" in path.parts:
        assert not functions & {"tasks", "run"}
        assert not any(name.startswith("attention_core.experiments.task") for name in imported(path))
    else:
        assert "run" in functions


def mathematics(tree):
    """Yield the syntax nodes with tensor mathematics: torch, linear algebra, products."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            is_mathematics = any({"torch", "linalg"} & set(name.split(".")) for name in names)
        elif isinstance(node, ast.Attribute):
            is_mathematics = node.attr in ("linalg", "einsum", "matmul", "tensordot", "polyfit")
        else:
            is_mathematics = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult)
        if is_mathematics:
            yield node


@pytest.mark.parametrize("path", SCREEN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_screen_code_has_no_tensor_mathematics(path):
    assert not [node.lineno for node in mathematics(ast.parse(path.read_text()))]


@pytest.mark.parametrize(
    "line",
    [
        "import torch.nn",
        "from torch import Tensor",
        "from numpy import linalg",
        "from numpy.linalg import norm",
        "np.linalg.svd(x)",
        "np.einsum('ij,jk', a, b)",
        "a @ b",
        "a @= b",
    ],
)
def test_each_kind_of_tensor_mathematics_is_detected(line):
    assert list(mathematics(ast.parse(line)))


MOST = 16
"""The highest number of source files in a folder."""
COLLECTIONS = ("attention_core/variants/*", "attention_core/claims/checks", "attention_core/claims/checks/*")
COLLECTIONS += ("pages/inside/stories", "attention_core/experiments")
"""Folders with one file per item, which may hold any number of files."""
SOURCES = [
    path
    for top in ("app", "attention_core", "pages")
    for pattern in ("*.py", "*.js", "*.css", "*.ts")
    for path in sorted((ROOT / top).rglob(pattern))
    if path.name != "__init__.py"
]


def test_a_folder_has_few_files():
    counts = Counter(path.parent.relative_to(ROOT) for path in SOURCES)
    full = {folder.as_posix(): count for folder, count in counts.items() if count > MOST}
    assert not {name for name in full if not any(Path(name).match(each) for each in COLLECTIONS)}
    assert full, "without a folder above the limit, the collections need no exception"


@pytest.mark.parametrize("top", ["app", "attention_core"])
def test_no_two_files_have_the_same_name(top):
    places = {}
    for path in SOURCES:
        if path.is_relative_to(ROOT / top):
            places.setdefault(path.name, []).append(path.relative_to(ROOT).as_posix())
    assert not {name: found for name, found in places.items() if len(found) > 1}
