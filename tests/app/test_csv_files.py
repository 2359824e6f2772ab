"""Tests that csv, pandas and pyarrow read the same table from the CSV file of every page."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pandas as pd
import pyarrow.csv
import pytest
import streamlit as st
from driver import visit

from app.state.session import write_text
from app.ui import export_metadata

PAGES = Path(__file__).parents[2] / "pages"
SMALL = "input=synthetic&n=16&d=8&heads=2&head=1&variants=softmax&variants=local~window~4"
SHORT = urlencode({"text": write_text('A "cat", =1+1,\n-2 and\r\nagain a "cat"')[0], "variants": "local~window~4"})
ADDRESSES = {
    f"matrices?{SHORT}&more=download": "matrices.csv",
    f"matrices?{SHORT}&more=heads": "head-scores.csv",
    f"masks?{SMALL}&masks_part=download": "masks.csv",
    **{f"error?{SMALL}&against={word}": "error.csv" for word in ("budget", "length", "cost")},
    f"entropy?{SMALL}&h_longest=128&h_seeds=1": "entropy_length.csv",
    f"entropy?{SMALL}&h_longest=128&h_seeds=1&h_view=normalizer": "normalizer_length.csv",
    f"entropy?{SMALL}&h_longest=128&h_seeds=1&h_view=distance": "distance.csv",
    f"entropy?{SMALL}&h_longest=128&h_seeds=1&h_view=factor": "homogeneity.csv",
    "learn": "learning.csv",
    "picture?p_below=download": "picture.csv",
    "timing?variants=softmax&variants=local": "timing.csv",
    f"causal?{SMALL}&c_view=overview": "causal-variants.csv",
    f"causal?{SHORT}&c_view=leaks": "leaks.csv",
    f"causal?{SHORT}&c_view=state": "state.csv",
    f"causal?{SHORT}&c_view=fading": "fading.csv",
    f"causal?{SMALL}&c_size=8&c_view=algorithms": "causal-algorithms.csv",
    f"causal?{SMALL}&c_view=generation": "generation.csv",
    f"causal?{SMALL}&c_view=gradient": "causal-gradient.csv",
    "claims": "claims.csv",
    f"claims?{SMALL}&claim=double_softmax": "double_softmax.csv",
    **{f"model?m_view={word}": "model.csv" for word in ("reading", "copying", "layers", "budget", "predicts")},
    "model?m_view=continuation&m_words=local~window~16": "continuation.csv",
    "model?m_view=encoder": "embeddings.csv",
    "model?m_view=trained&trained=recall&trained=softmax&trained=steps~2&trained=length~16": "trained-model.csv",
}
"""An address for each button that saves a CSV file, with the name of the file."""


@pytest.fixture
def saved(monkeypatch):
    """Return a function that opens an address and gives the bytes of the file with that name."""
    offered = {}
    button = st.download_button

    def download_button(label, data, file_name, *args, **kwargs):
        offered[file_name] = data
        return button(label, data, file_name, *args, **kwargs)

    def save(address, name):
        page, _, query = address.partition("?")
        assert not visit(page, parse_qs(query)).exception
        return offered[name]()

    monkeypatch.setattr(st, "download_button", download_button)
    return save


def read_by_all(data):
    """Return header and rows of a CSV file, after checking that csv, pandas and pyarrow read the same cells."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert [len(row) for row in rows] == [len(header)] * len(rows)
    for engine in ("c", "python"):
        found = pd.read_csv(io.BytesIO(data), engine=engine, dtype=str, keep_default_na=False)
        assert found.columns.tolist() == header
        assert found.to_numpy().tolist() == rows
    parsed = pyarrow.csv.ParseOptions(newlines_in_values=True)
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(header, pyarrow.string()))
    found = pyarrow.csv.read_csv(io.BytesIO(data), parse_options=parsed, convert_options=options)
    assert found.column_names == header
    assert [list(row.values()) for row in found.to_pylist()] == rows
    return header, rows


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_reader_reads_the_same_table(saved, address):
    header, rows = read_by_all(saved(address, ADDRESSES[address]))
    assert rows
    assert len(set(header)) == len(header)
    origin = [i for i, name in enumerate(header) if name.startswith(f"{export_metadata.MEMBER} ")]
    assert all(rows[0][i] for i in origin)
    assert not any(row[i] for row in rows[1:] for i in origin)


def test_every_button_that_saves_a_table_is_tested():
    named = {name for path in PAGES.rglob("*.py") for name in re.findall(r'"([\w-]+\.csv)"', path.read_text())}
    assert len(named) > 10
    assert named <= set(ADDRESSES.values())
