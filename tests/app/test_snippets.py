"""Tests that all Python code that pages offer for copying runs, and that it uses the input on the page."""

import contextlib
import io

import pytest
from driver import open_page
from no_model import without_a_model
from test_links import SHORT, VIEWS

import attention_core as ac
from attention_core.inputs import SyntheticSource, SyntheticSpec

SPEC = SyntheticSpec(n=24, heads=2, seed=5)
INPUT = {"input": "synthetic", "n": "24", "heads": "2", "seed": "5", "head": "1"}
MORE = {
    "masks": [{"masks_part": "download"}],
    "causal": [{"c_view": "fading", "c_decays": ["0.8", "0.95"]}, {"c_view": "fading", "c_decays": "none"}],
    "entropy": [{"h_view": "normalizer", "h_longest": "64", "h_seeds": "1"}],
}
WITHOUT = {"home", "error", "timing", "model", "learn", "claims", "lessons"}
"""Pages that offer no Python snippet of their own."""


@pytest.fixture(autouse=True)
def made_up_numbers(monkeypatch):
    without_a_model(monkeypatch)


@pytest.mark.parametrize("page", VIEWS)
def test_code_runs_and_uses_the_input_on_screen(page, tmp_path, monkeypatch):
    source = SyntheticSource(SPEC)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qkv.npz").write_bytes(ac.inputs.to_npz(source.load()))
    seen = set()
    for view in (*VIEWS[page], *MORE.get(page, ())):
        at = open_page(page, (SHORT if page == "entropy" else {}) | view | INPUT)
        seen |= {block.value for block in at.code if "import attention_core" in block.value}
    own = {code for code in seen if "torch.randn" not in code}  # The other code uses random input.
    assert bool(own) == (page not in WITHOUT)
    for code in seen:
        about_an_image = page == "picture" and "ac.inputs.ImageSource(" in code
        assert code not in own or source.code in code or "qkv.npz" in code or about_an_image
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {})
