"""Tests of the library in an environment with torch, numpy and their dependencies only."""

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import attention_core

ROOT = Path(__file__).parent.parent.parent


def collect_files(name, found):
    """Add to ``found`` the top-level files and folders of a distribution and its dependencies, by their name."""
    known = distribution(name)
    for file in known.files:
        if (top := file.parts[0]) not in ("..", "__pycache__"):
            found[top] = known.locate_file(top)
    for line in known.requires or ():
        requirement, _, marker = line.partition(";")
        if "extra" in marker or "cuda" in line or "nvidia" in line or "triton" in line:
            continue
        needed = re.match(r"[\w.-]+", requirement)[0]
        if "python_version" not in marker and needed.lower() not in found:
            found[needed.lower()] = None
            collect_files(needed, found)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return a folder with links to the library, torch, numpy and their dependencies."""
    folder, found = tmp_path_factory.mktemp("bare"), {}
    for name in ("torch", "numpy"):
        collect_files(name, found)
    for name, place in found.items():
        if place is not None:
            (folder / name).symlink_to(place)
    (folder / "attention_core").symlink_to(ROOT / "attention_core")
    return folder


def run(folder, code):
    """Run code with the modules of a folder and the standard library only, and return its output."""
    command = [sys._base_executable, "-S", "-c", code]  # -S: without the environment's own site-packages
    environment = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


CODE = """
import importlib.util
assert not [name for name in ("transformers", "safetensors", "msgspec", "pandas", "streamlit", "plotly", "tqdm")
            if importlib.util.find_spec(name)]
import torch
import attention_core as ac
q, k, v = torch.randn(3, 2, 24, 8)
for each in ac.all_variants():
    attention = ac.get(each.key)
    assert torch.isfinite(attention(q, k, v)).all(), each.key
    assert attention.weights(q, k).shape == (2, 24, 24)
found = ac.compare(q.numpy(), k, v, ["softmax", "local~window~4"])
assert type(found.table) is list and found.table[0]["matrix"] == 0
assert ac.sweep("entropy", (q, k, v), ["softmax"])
source = ac.inputs.TensorSource.of(q, k, v)
assert len(ac.claims.all_claims()) > 20
outcomes = [o for t in ac.claims.tasks(source, keys=["sparse_costs"]) for o in ac.claims.run(t)]
assert outcomes
try:
    ac.inputs.from_text("the cat")
except ac.LabError as error:
    print(error)
"""


def test_the_bare_library_runs_every_variant_and_names_the_models_extra(bare):
    output = run(bare, CODE)
    assert "pip install 'attention-lab[models]'" in output


def test_importing_the_library_takes_less_than_twice_as_long_as_torch(bare):
    # CPU time, as other programs may delay either import. The first import of torch warms up the disk.
    code = (
        "import time; a = time.process_time(); import torch; b = time.process_time(); import attention_core; "
        "c = time.process_time(); print(c - a < 2 * (b - a), 'transformers' in __import__('sys').modules)"
    )
    assert run(bare, code) == "True False\n"


def test_public_names_exist_and_an_unknown_name_is_an_attribute_error():
    for name in attention_core.__all__:
        assert getattr(attention_core, name) is not None
        assert name in dir(attention_core)
    with pytest.raises(AttributeError, match="no attribute 'softmax'"):
        _ = attention_core.softmax
    assert attention_core.experiments.error.tasks
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = attention_core.experiments.nothing
