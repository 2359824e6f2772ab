"""The lab as a package: built, installed beside nothing of its checkout, and started from an empty folder."""

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest
from browser import visit
from conftest import ROOT, free_port, serve
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the built package and nothing else; what lies about untracked has no part in it."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={folder}", str(source)]
    subprocess.run(command, check=True)
    return folder


def tracked(*folders):
    command = ["git", "ls-files", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def test_the_package_holds_every_file_that_runs(installed):
    wanted = {name for name in tracked("app", "attention_core", "pages") if not name.endswith((".d.ts", ".po", ".pot"))}
    assert len(wanted) > 200
    assert {name for name in wanted if not (installed / name).exists()} == set()


def test_it_starts_from_an_empty_folder_and_draws_a_page(installed, tmp_path, page):
    # The interpreter beneath the environment does not see the checkout that is installed there to be edited.
    python = [sys._base_executable, "-c"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), sysconfig.get_path("purelib")])}
    port, empty = free_port(), tmp_path / "empty"
    empty.mkdir()
    where = subprocess.run(
        [*python, "import app; print(app.__file__)"], cwd=empty, env=environment, capture_output=True, text=True
    )
    assert where.stdout.startswith(str(installed))
    command = [*python, "from app.command import main; main()", f"--server.port={port}", "--server.headless=true"]
    process = serve([*command, "--server.address=127.0.0.1"], port, tmp_path, cwd=empty, env=environment)
    try:
        visit(page, f"http://127.0.0.1:{port}/masks?input=synthetic&n=12&heads=1")
        expect(page.get_by_text("Who may look at whom, and how far?").first).to_be_visible()
        visit(page, f"http://127.0.0.1:{port}/masks?input=upload")
        expect(page.get_by_text("64MB")).to_be_visible()  # the settings came along
        assert not list(empty.iterdir())
    finally:
        process.terminate()
        process.wait(20)
