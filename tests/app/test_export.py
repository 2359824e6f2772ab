"""Tests of downloads: a file is created only when its button is pressed, and contains the numbers on the page."""

import csv
import gc
import io
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from driver import open_page

import attention_core as ac
from app.jobs import cached
from app.ui import export
from attention_core.analysis.masks.pattern import pattern
from attention_core.analysis.matrix.inside import intermediate_results
from attention_core.analysis.state.recurrent_state import state_history
from attention_core.inputs import SyntheticSpec, from_synthetic

SMALL = {"input": "synthetic", "n": 20, "d": 8, "heads": 2, "head": 1, "seed": 43}
FILES = {
    "matrices": ({"more": "download"}, {"matrices.csv", "matrices.npz", "qkv.npz"}),
    "masks": ({"masks_part": "download"}, {"masks.csv", "masks.npz"}),
    "inside": ({"inside": ac.get("nystrom")}, {"nystrom-inside.npz", "qkv.npz"}),
    "state": ({"c_view": "state", "c_size": 8}, {"state.csv", "state.npz"}),
    "fading": ({"c_view": "fading", "c_size": 8}, {"fading.csv"}),
}


@pytest.fixture
def offered(monkeypatch):
    """Return a function that opens a view and gives its files by name, as functions called outside a script run."""
    made = {}

    def download(label, data, name, **how):
        made[name] = data

    def press(name):
        with ThreadPoolExecutor(1) as anywhere:
            return anywhere.submit(made[name]).result()

    def of(view, /, **state):
        monkeypatch.setattr(export, "download", download)
        page = open_page("causal" if view in ("state", "fading") else view, **SMALL | FILES[view][0] | state)
        assert not page.exception
        return {name: lambda name=name: press(name) for name in made}

    return of


@pytest.fixture(scope="module")
def record():
    """Return the record shown by all views."""
    return from_synthetic(SyntheticSpec(n=20, d=8, heads=2, seed=43))


def read(data):
    with np.load(io.BytesIO(data)) as found:
        return dict(found)


def arrays(found):
    """Yield every array and tensor inside a result."""
    if isinstance(found, (np.ndarray, torch.Tensor)):
        yield found
        if getattr(found, "base", None) is not None:
            yield found.base
        return
    parts = ()
    if is_dataclass(found):
        parts = [getattr(found, field.name) for field in fields(found)]
    elif isinstance(found, Mapping):
        parts = found.values()
    elif isinstance(found, (list, tuple)):
        parts = found
    for part in parts:
        yield from arrays(part)


@pytest.mark.parametrize("view", FILES)
def test_a_download_button_keeps_no_evicted_result_in_memory(offered, view):
    """Check the button's memory: Streamlit keeps a button's arguments until each visitor's page is redrawn."""
    caches = [*cached._caches, cached.records().cache]
    for cache in caches:
        for key in list(cache._entries):
            cache.drop(key)
    files = offered(view)
    computed = [
        weakref.ref(array)
        for cache in caches
        for key in list(cache._entries)
        for array in arrays(getattr(cache.known(key), "value", cache.known(key)))
        if array.nbytes >= 20 * 20
    ]
    for cache in caches:
        for key in list(cache._entries):
            cache.drop(key)
    gc.collect()
    assert set(files) == FILES[view][1]
    assert len(computed) > 2
    assert not [each() for each in computed if each() is not None]


@pytest.mark.parametrize("difference", [False, True])
def test_the_files_of_matrices_have_the_shown_numbers(offered, record, difference):
    chosen = (ac.get("softmax"), ac.get("local", window=3))
    files = offered("matrices", variants=chosen, view="difference" if difference else "weights")
    expected = {a.key: a.weights(record.q[1:2], record.k[1:2], causal=False)[0].numpy() for a in chosen}
    found = read(files["matrices.npz"]())
    assert {name: found[name].shape for name in expected} == dict.fromkeys(expected, (20, 20))
    for name, weights in expected.items():
        assert np.allclose(np.nan_to_num(found[name]), weights, atol=1e-6)
        assert not weights[np.isnan(found[name])].any()
    assert np.isnan(found["local"]).any()
    assert not np.isnan(found["softmax"]).any()
    rows = list(csv.reader(io.StringIO(files["matrices.csv"]().decode("utf-8-sig"))))[1:]
    assert {row[0] for row in rows} == ({"local"} if difference else {"softmax", "local"})
    shown = expected["local"] - expected["softmax"] if difference else expected["local"]
    for name, i, _token, j, _other, value in rows:
        if name == "local":
            assert float(value) == pytest.approx(shown[int(i), int(j)], abs=1e-6)
    assert np.array_equal(read(files["qkv.npz"]())["q"], record.q.numpy())


@pytest.mark.parametrize(
    ("head", "special", "causal"), [(3, False, False), (3, True, True), (-1, False, True), (-1, True, False)]
)
def test_the_code_of_matrices_computes_the_arrays_of_the_file(offered, tmp_path, monkeypatch, head, special, causal):
    chosen = (ac.get("softmax"), ac.get("local", window=2), ac.get("nystrom", landmarks=3), ac.get("linformer"))
    sentence = {"input": "text", "text": "The cat saw the small dog.", "layer": 2, "head": head}
    shown = sentence | {"variants": chosen, "special": special, "causal": causal}
    files = offered("matrices", **shown)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qkv.npz").write_bytes(files["qkv.npz"]())
    [code] = [each.value for each in open_page("matrices", more="download", **shown).code if "qkv.npz" in each.value]
    computed = {}
    exec(code, computed)
    found = read(files["matrices.npz"]())
    arrays = set(found) - {"provenance"}
    assert arrays == {a.key for a in chosen if not (causal and a.variant.causal_reason)}
    assert found["softmax"].shape == ((9, 9) if special else (7, 7))
    for name in arrays:
        assert np.array_equal(computed[name], found[name], equal_nan=True)


def test_the_file_of_masks_has_the_masks_and_their_parts(offered, record):
    attention = ac.get("bigbird")
    expected = pattern(record, attention, head=1, causal=True)
    found = read(offered("masks", variants=(attention,), causal=True)["masks.npz"]())
    assert np.array_equal(found["bigbird"], expected.allowed)
    for name, part in expected.primitives.items():
        assert np.array_equal(found[f"bigbird.{name}"], part)


def test_the_file_of_inside_has_every_part(offered, record):
    expected = intermediate_results(record, ac.get("nystrom"), 1, False)
    found = read(offered("inside")["nystrom-inside.npz"]())
    assert set(found) >= {*expected.parts, "weights", "reference"}
    assert np.array_equal(found["weights"], expected.weights)
    for name, part in expected.parts.items():
        assert np.array_equal(found[name], part)


@pytest.mark.parametrize("key", ["linear", "deltanet"])
def test_the_files_of_states_have_the_state_and_its_norms(offered, record, key):
    attention = ac.get(key)
    expected = state_history(record, attention, head=1)
    files = offered("state", c_state=attention)
    found = read(files["state.npz"]())
    assert np.array_equal(found["S"], expected.sums)
    assert ("z" in found) == (key == "linear")
    assert ("erases" in found) == (key == "deltanet")
    header, *rows = csv.reader(io.StringIO(files["state.csv"]().decode("utf-8-sig")))
    assert header[1:3] == (["‖S‖", "‖z‖"] if key == "linear" else ["‖S‖", "written"])
    assert [float(row[1]) for row in rows] == pytest.approx(np.linalg.norm(expected.sums, axis=(1, 2)).tolist())
