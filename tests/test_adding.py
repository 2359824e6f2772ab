"""A test that a variant, page, option, claim and lesson can be added to a copy of the project and break no test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from test_addresses import ADDRESSES

ROOT = Path(__file__).parents[1]
ADDED = {
    "attention_core/variants/sparse/added.py": '''\
"""Added attention: a token attends to tokens at an even distance."""

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.softmax.masked import distances, masked_softmax, scores
from attention_core.variant import Cost, Params, Variant


def rule_masks(n: int, p: Params, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """The pairs at an even distance, ``bool [n, n]``."""
    return {"even": distances(n, device) % 2 == 0}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return softmax over the tokens at an even distance, ``[..., n, n]``."""
    return masked_softmax(scores(q, k), mask(q.shape[-2], p, causal=causal))


def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return the output, ``[..., n, d_v]``."""
    return weights(q, k, p, causal=causal) @ v


def cost(n: int, d: int, p: Params, *, causal: bool) -> Cost:
    """Return the cost of two products with the full matrix."""
    return Cost(multiply_adds=2 * n * n * d, peak_elements=2 * n * n + n * d)


VARIANT = Variant(
    __name__,
    title="Added",
    summary="Each token attends to the tokens at an even distance.",
    formula=r"A_{ij} \\propto e^{q_i^\\top k_j / \\sqrt d}\\text{ where } i - j \\text{ is even}",
    complexity="n² d",
    params=Params,
    approximates="softmax",
    source=articles.STANDARD_TO_SPARSE,
)
''',
    "pages/added/__init__.py": '"""A page."""\n',
    "pages/added/page.py": '''"""A page with one sentence."""

import streamlit as st

from app.page import Page
from app.state.controls import Options, switch
from app.words.i18n import N_, _


class AddedOptions(Options, prefix="added_"):
    """The options of the page."""

    shown = switch(True, N_("Show the sentence"))


def show(_top: None) -> None:
    """Draw the page."""
    AddedOptions.shown.draw()
    st.markdown(_("This page was added."))


PAGE = Page(
    title=N_("Added"),
    icon=":material/add:",
    section="Understand",
    rank=99,
    question=N_("What does an added page show?"),
    options=AddedOptions,
    top=lambda: None,
    views={"added": show},
)
''',
    "app/lessons/shipped/added.toml": """lesson = 1
title = "An added lesson"
minutes = 1

[[step]]
at = "matrices?text=@story&special=0&variants=softmax&variants=efficient"
say = "Two variants on the same head."
ask = "What is the average row entropy of Efficient attention?"
answer = "entropy efficient"
then = "It is computed from the matrix on screen."
""",
}
"""Contents of the added files by path. The claim is a copy of another claim under a new name."""
TESTS = (
    "tests/test_architecture.py",
    "tests/app/test_addresses.py",
    "tests/app/test_palette.py",
    "tests/app/test_links.py",
    "tests/app/test_url.py",
    "tests/app/test_openings.py",
    "tests/app/test_pages.py",
    "tests/app/test_variant_picker.py",
    "tests/app/test_lesson_facts.py::test_a_lesson_with_facts_has_them_for_each_step",
    "tests/core/claims/test_every_claim.py::test_claims_are_numbered_from_one_and_grouped_by_subject_and_source",
    "tests/core/test_registry.py",
)
"""Tests that run over all variants, pages, options, claims or lessons."""
FIRST = {address.partition("?")[0]: address for address in reversed(ADDRESSES)}
"""The first address of each page."""
CHANGED = ("entropy", "home")
"""Pages whose controls are all tested: one with the added option, and one with all variants."""


def copied(folder):
    """Copy the files that git tracks, and those that it does not ignore, into a folder."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def replace(path, old, new):
    """Replace a text that occurs once in a file."""
    text = path.read_text("utf-8")
    assert text.count(old) == 1, f"{path} holds {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), "utf-8")


def left_out():
    """Return pytest's options that leave out the controls of unchanged pages, and further addresses of each page."""
    unchanged, further = FIRST.keys() - set(CHANGED), set(ADDRESSES) - set(FIRST.values())
    links = [f"tests/app/test_links.py::test_every_changed_control_changes_the_link[{page}]" for page in unchanged]
    addresses = [f"tests/app/test_addresses.py::test_an_address_opens_the_same_numbers[{each}]" for each in further]
    return [word for name in (*links, *addresses) for word in ("--deselect", name)]


def test_adding_one_of_each_breaks_no_other_test(tmp_path):
    copied(tmp_path)
    for name, text in ADDED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    replace(
        tmp_path / "app/lessons/shipped.py", '"convolution_and_gate",\n)', '"convolution_and_gate",\n    "added",\n)'
    )
    replace(tmp_path / "app/ui/palette.py", '\n"""\n\n\n@cache', ' added\n"""\n\n\n@cache')
    replace(
        tmp_path / "pages/entropy/options.py",
        "    unit = choice(",
        '    added = switch(False, N_("Added"))\n    unit = choice(',
    )
    replace(
        tmp_path / "pages/entropy/view.py",
        "for option in (EntropyOptions.unit,",
        "for option in (EntropyOptions.added, EntropyOptions.unit,",
    )
    checks = tmp_path / "attention_core/claims/checks/softmax"
    shutil.copy2(checks / "memory_quadruples.py", checks / "added_claim.py")

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not e2e", *left_out()]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *TESTS],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
