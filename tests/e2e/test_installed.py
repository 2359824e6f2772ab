"""Tests of the package, built and installed in a separate environment: its files, library, command and app."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

import pytest
from browser import open_input, visit
from conftest import ROOT, free_port, serve
from playwright.sync_api import expect

import attention_core
from attention_core.inputs.models import minilm, smollm2


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder that holds only the package, installed from a wheel of the tracked files."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    pip, wheels = [sys.executable, "-m", "pip"], tmp_path_factory.mktemp("wheels")
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", f"--wheel-dir={wheels}", str(source)], check=True)
    [wheel] = wheels.iterdir()
    subprocess.run([*pip, "install", "--quiet", "--no-deps", f"--target={folder}", str(wheel)], check=True)
    return folder


def tracked(*folders):
    command = ["git", "ls-files", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def test_the_package_contains_every_file_under_two_names(installed):
    screen = tracked("app", "pages")
    expected = {f"attention_lab/{name}" for name in screen} | set(tracked("attention_core", "attention_lab"))
    expected = {name for name in expected if not name.endswith((".d.ts", ".po", ".pot"))}
    assert len(expected) > 200
    assert {name for name in expected if not (installed / name).exists()} == set()
    names = {folder.name for folder in installed.iterdir() if folder.suffix != ".dist-info"}
    assert names - {"bin"} == {"attention_core", "attention_lab"}


def test_the_package_describes_itself(installed):
    [about] = distributions(path=[str(installed)])
    assert about.version == attention_core.__version__
    assert about.metadata["License-Expression"] == "Apache-2.0"
    assert about.metadata["Description-Content-Type"] == "text/markdown"
    _headers, _, description = about.read_text("METADATA").partition("\n\n")
    assert description.startswith("# Attention Lab\n")
    [command] = about.entry_points
    assert (command.name, command.group) == ("attention-lab", "console_scripts")
    needed = [each for each in about.requires if "extra ==" not in each]
    assert sorted(re.match(r"[\w-]+", each)[0] for each in needed) == ["numpy", "torch"]


@pytest.mark.parametrize("file", ["README.md", "attention_core/README.md"])
def test_five_readme_lines_print_a_table_in_an_empty_folder(installed, tmp_path, file):
    text = (ROOT / file).read_text("utf-8")
    code = re.search(r"<!-- compare -->\n```python\n(.*?)```", text, re.DOTALL)[1]
    assert len(list(filter(str.strip, code.splitlines()))) == 5
    command = [sys._base_executable, "-c", code]
    packages = [path for path in sys.path if Path(path).name == "site-packages"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(installed, *packages), capture_output=True, text=True)
    header, *_rows = ended.stdout.splitlines() or [ended.stderr]
    assert {"variant", "head", "multiply_adds"} <= {*header.split()}, ended.stderr
    assert ("output" in header.split()) == (file == "README.md")
    assert ended.stdout.count("softmax") == 4
    assert list(tmp_path.iterdir()) == []


def test_the_library_compares_and_shows_variants_from_an_empty_folder(installed, tmp_path):
    code = """
import torch
import attention_core as ac
q, k, v = torch.randn(3, 2, 16, 8)
widget = ac.show(ac.compare(q, k, v, ["softmax", "local"]))
assert "--jp-layout-color0" in widget._esm and "https://" not in widget._esm
print(type(widget).__name__, ac.plot.matrix(ac.get("softmax").weights(q, k)[0]).data[0].type)
"""
    command = [sys._base_executable, "-c", code]
    packages = [path for path in sys.path if Path(path).name == "site-packages"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(installed, *packages), capture_output=True, text=True)
    assert ended.stdout == "MatrixWidget heatmap\n", ended.stderr


def test_the_command_without_streamlit_names_the_extra_to_install(installed, tmp_path):
    command = [sys._base_executable, "-S", str(installed / "bin" / "attention-lab")]
    settings = {**os.environ, "PYTHONPATH": str(installed)}
    ended = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "The app needs packages that are not installed. Run: pip install 'attention-lab[app]'\n"


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a visitor's own project, whose modules have the names of the lab's modules."""
    own = tmp_path / "own"
    for name in ("app.py", "pages/__init__.py", "pages/page.py"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(f"WHOSE = 'of the user: {name}'\n")
    return own


def environment(*folders):
    """Return an environment with folders and the installed packages, but not the checkout, on Python's path."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, folders), sysconfig.get_path("purelib")])}


@contextmanager
def running(command, folder, tmp_path, environment):
    """Run a command that starts a server in a folder, and yield the server's address."""
    port = free_port()
    command = [sys._base_executable, *command, f"--server.port={port}", "--server.headless=true"]
    process = serve([*command, "--server.address=127.0.0.1"], port, tmp_path, cwd=folder, env=environment)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def files(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if "__pycache__" not in file.parts}


@pytest.mark.parametrize("module", [False, True], ids=["command", "module"])
def test_the_lab_starts_next_to_a_users_own_app_and_pages(installed, folder, tmp_path, page, module):
    before = files(folder)
    command = ["-m", "attention_lab"] if module else [str(installed / "bin" / "attention-lab")]
    with running(command, folder, tmp_path, environment(folder, installed)) as address:
        visit(page, f"{address}/masks?input=synthetic&n=12&heads=1")
        expect(page.get_by_text("Which tokens can each token read, in one layer and in several?").first).to_be_visible()
        visit(page, f"{address}/masks?input=upload")
        open_input(page)
        expect(page.get_by_text("64MB")).to_be_visible()  # The package's Streamlit settings set this limit.
        page.goto("about:blank")  # The app's page would report an error when its server stops.
    assert files(folder) == before


def test_a_user_can_import_their_own_app_and_pages(installed, folder, tmp_path):
    code = "import attention_core, attention_lab, app, pages.page; print(app.WHOSE, pages.page.WHOSE, sep='; ')"
    command = [sys._base_executable, "-c", code]
    ended = subprocess.run(command, cwd=folder, env=environment(installed), capture_output=True, text=True)
    assert ended.stdout == "of the user: app.py; of the user: pages/page.py\n", ended.stderr
    elsewhere = subprocess.run(
        [sys._base_executable, "-c", "import app"], cwd=tmp_path, env=environment(installed), capture_output=True
    )
    assert b"No module named 'app'" in elsewhere.stderr


def test_workers_without_weights_compute_synthetic_input(installed, folder, tmp_path, page):
    hidden = tmp_path / "no_weights"
    for weights in (minilm.WEIGHTS, smollm2.WEIGHTS):
        (hidden / weights.package).mkdir(parents=True)
        (hidden / weights.package / "__init__.py").touch()
    settings = environment(hidden, installed) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [str(installed / "bin" / "attention-lab")]
    with running(command, folder, tmp_path, settings) as address:  # This server starts the default number of workers.
        visit(page, f"{address}/error?input=synthetic&n=24&d=4&heads=2")
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
        assert page.get_by_text("ended unexpectedly").count() == 0
        assert page.get_by_text("cannot start").count() == 0
        assert page.get_by_text("not installed").count() == 0
        page.goto("about:blank")
