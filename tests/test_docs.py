"""Tests of the documentation site (no warnings, a page per variant, examples that run) and of the Chinese README."""

import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import attention_core as ac

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "docs" / "site"
EXAMPLES = [
    (path.name, code)
    for path in sorted(SOURCES.glob("*.md"))
    for code in re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the built site; any warning fails the build, also one about a page of a deleted variant."""
    folder = tmp_path_factory.mktemp("site")
    (SOURCES / "generated").mkdir(exist_ok=True)
    (SOURCES / "generated" / "deleted_variant.md").write_text("# A variant of an earlier build\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "cache", SOURCES, folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_variant_has_a_page_with_its_formula_picture_cost_settings_code_and_source(site):
    for variant in ac.all_variants():
        page = (site / "generated" / f"{variant.key}.html").read_text("utf-8")
        assert "<math" in page, variant.key
        assert 'src="data:image/png;base64,' in page, variant.key
        assert variant.source.url.replace("&", "&amp;") in page, variant.key
        assert f"{ac.get(variant.key).cost(8192, 64).multiply_adds:,} multiply-adds" in page, variant.key
        assert 'id="definition"' in page, variant.key
        for setting in variant.params.settings():
            assert f">{setting.name}<" in page, (variant.key, setting.name)
        assert ('id="equal-to"' in page) == bool(variant.special_cases), variant.key


def test_a_special_case_is_shown_with_its_conditions(site):
    def text(key):
        page = (site / "generated" / f"{key}.html").read_text("utf-8")
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page))

    assert "DeltaNet with gate=constant, decay=1.0, for equal keys and strength" in text("kda")
    assert "Longformer with random_keys=0, where the other variant has dilation=1, for" in text("bigbird")
    assert "Softmax with base_length=n, in the form that is not causal" in text("softmax_log_n")
    assert "Write weights(q, k, p, *, causal), which returns the explicit matrix" in text("add_a_variant")


@pytest.mark.parametrize("name", ["experiments.learning.plan", "learning.model.TinyModel", "learning.train.TrainSpec"])
def test_the_reference_documents_training(site, name):
    assert f'id="attention_core.{name}"' in (site / "reference.html").read_text("utf-8")


def test_no_page_loads_anything_from_another_host(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|link|iframe)[^>]*\b(?:src|href)=\"(https?:[^\"]*)", path.read_text("utf-8")
        )
        assert not loaded, path.name


def test_every_public_name_and_every_name_in_examples_is_documented(site):
    page = (site / "reference.html").read_text("utf-8")
    files = [*SOURCES.glob("*.md"), ROOT / "README.md", ROOT / "attention_core" / "README.md"]
    texts = [path.read_text("utf-8") for path in (*files, *(ROOT / "docs" / "notebooks").glob("*.ipynb"))]
    used = {name for text in texts for name in re.findall(r"\bac\.([a-z_A-Z.]+[a-zA-Z])", text)}
    assert {"compare", "show", "plot.error", "model_patching.swapped", "inputs.SyntheticSpec"} <= used
    named = {name for name in used | {*ac.__all__} if callable(attrgetter(name)(ac))}
    assert not {name for name in named if f'id="attention_core.{name}"' not in page}


@pytest.mark.parametrize(("page", "code"), EXAMPLES, ids=[f"{page}-{i}" for i, (page, _) in enumerate(EXAMPLES)])
def test_an_example_runs(page, code, capsys):
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize("parts", [r"^```.*?^```", r"(?<!`)`[^`\n]+`(?!`)", r"^#+ ", r"^\| `[^`]+` "])
def test_the_chinese_readme_has_the_same_code_sections_and_tables(parts):
    english, chinese = (
        re.findall(parts, (ROOT / name).read_text("utf-8").partition("\n# ")[2], re.MULTILINE | re.DOTALL)
        for name in ("README.md", "README.zh-CN.md")
    )
    if parts.startswith("(?<"):  # Words in code may have another order in a Chinese sentence.
        english, chinese = set(english), set(chinese)
    assert english == chinese
    assert english
