"""Who may know whom: pages -> app -> attention_core, never back."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [p for top in ("app", "attention_core", "pages") for p in sorted((ROOT / top).rglob("*.py"))]


def imported(path):
    """Every module a file imports, ``from a import b`` counted as both ``a`` and ``a.b``."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def forbidden(path):
    """The modules a file may not know."""
    place = path.relative_to(ROOT).as_posix()
    rules = {
        "attention_core/": ("app", "pages", "streamlit", "plotly"),
        "attention_core/algorithms/": ("attention_core.variants", "attention_core.registry", "attention_core.inputs"),
        "attention_core/variants/": (
            "attention_core.variants",
            "attention_core.registry",
            "attention_core.inputs",
            "attention_core.metrics",
        ),
        "app/": ("pages", "main", "streamlit_app"),
        "app/figures/": ("streamlit", "torch", "attention_core", "app.compute"),
        "pages/": ("torch", "numpy", "plotly", "attention_core.limits", "attention_core.variants", "pages"),
    }
    return {name for prefix, names in rules.items() if place.startswith(prefix) for name in names}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_file_knows_only_what_it_may(path):
    known = imported(path)
    broken = {name for name in known for no in forbidden(path) if name == no or name.startswith(no + ".")}
    assert not broken


def test_the_rules_bite(tmp_path):
    assert "streamlit" in forbidden(ROOT / "attention_core" / "variant.py")
    assert {"torch", "plotly"} <= forbidden(ROOT / "pages" / "matrices.py")
    bad = tmp_path / "bad.py"
    bad.write_text("from plotly import graph_objects\nimport torch.nn\n")
    assert {"plotly", "plotly.graph_objects", "torch.nn"} <= imported(bad)


def test_pages_stay_short():
    long = {p.name: n for p in (ROOT / "pages").glob("*.py") if (n := len(p.read_text().splitlines())) > 90}
    assert not long
