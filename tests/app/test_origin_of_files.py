"""Tests that a downloaded file states the origin of its numbers, and that pandas and NumPy still read it."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from driver import open_page
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ui import export_metadata
from app.ui.export import FORMULA, _escape_formula, to_csv, to_npz
from attention_core.inputs import SyntheticSpec, from_synthetic, from_upload
from attention_core.inputs import to_npz as record_npz

ORIGIN = {"title": "Matrices · Numbers", "text": 'a, "b"\nc', "link": "http://x/matrices?layer=2&n=3"}
CELLS = st.one_of(st.text(max_size=8), st.floats(allow_nan=False), st.integers())


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
def test_a_table_is_read_as_before_and_has_its_origin(rows):
    plain = to_csv(["a", "b"], rows)
    stamped = export_metadata.add_to_csv(plain, ORIGIN, _escape_formula)
    before = list(csv.reader(io.StringIO(plain.decode("utf-8-sig"), newline="")))
    after = list(csv.reader(io.StringIO(stamped.decode("utf-8-sig"), newline="")))
    assert [row[:2] for row in after] == before
    assert after[0][2:] == [f"provenance {name}" for name in ORIGIN]
    assert after[1][2:] == list(ORIGIN.values())
    assert [row[2:] for row in after[2:]] == [[""] * len(ORIGIN)] * (len(after) - 2)


def test_a_table_keeps_a_column_with_the_name_of_an_origin_entry():
    stamped = export_metadata.add_to_csv(
        to_csv(["head", "link"], [(1, "own")]), {"head": "3", "link": "http://x"}, _escape_formula
    )
    [row] = csv.DictReader(io.StringIO(stamped.decode("utf-8-sig")))
    assert row == {"head": "1", "link": "own", "provenance head": "3", "provenance link": "http://x"}


def test_pandas_reads_the_table():
    stamped = export_metadata.add_to_csv(to_csv(["a", "b"], [(1, 2.5), (3, 4.5)]), ORIGIN, _escape_formula)
    found = pd.read_csv(io.BytesIO(stamped))
    assert found["a"].tolist() == [1, 3]
    assert found["b"].tolist() == [2.5, 4.5]
    assert found["provenance link"].tolist()[0] == ORIGIN["link"]
    assert found["provenance link"].isna().tolist() == [False, True]


@pytest.mark.parametrize("words", ["=1+1", "@cmd", "-x", "+x"])
def test_no_spreadsheet_evaluates_the_origin_of_a_table(words):
    stamped = export_metadata.add_to_csv(to_csv(["a"], [(1,)]), {"text": words}, _escape_formula).decode("utf-8-sig")
    assert not any(FORMULA.match(cell) for row in csv.reader(io.StringIO(stamped)) for cell in row)


@pytest.mark.parametrize("plain", [b"", to_csv(["a", "b"], [])])
def test_a_table_without_rows_is_unchanged(plain):
    assert export_metadata.add_to_csv(plain, ORIGIN, _escape_formula) == plain


def test_arrays_are_unchanged_and_have_their_origin():
    stamped = export_metadata.add_to_npz(to_npz({"x": np.arange(3)}), ORIGIN)
    with np.load(io.BytesIO(stamped), allow_pickle=False) as found:
        assert found["x"].tolist() == [0, 1, 2]
        assert json.loads(str(found[export_metadata.MEMBER])) == ORIGIN


def test_a_record_with_an_origin_can_be_read_again():
    record = from_synthetic(SyntheticSpec(n=5, d=4, heads=2))
    again = from_upload(export_metadata.add_to_npz(record_npz(record), ORIGIN), "again.npz")
    assert np.array_equal(again.q.numpy(), record.q.numpy())
    assert again.tokens == record.tokens
    assert again.notices == ()


@pytest.fixture
def origins(monkeypatch):
    found = []
    now = export_metadata.read_origin

    def noting(title, **how):
        found.append(now(title, **how))
        return found[-1]

    monkeypatch.setattr(export_metadata, "read_origin", noting)
    return found


def test_a_file_describes_the_screen(origins):
    open_page(
        "matrices",
        {"text": "@repeats", "layer": "1", "head": "2", "variants": ["softmax", "local~window~3"], "more": "download"},
    )
    [matrices, *_others] = origins
    assert matrices["title"] == "Matrices · Matrices (CSV)"
    assert (matrices["model"], matrices["layer"], matrices["head"]) == ("MiniLM-L6", "1", "head 2")
    assert matrices["settings"] == "softmax local~window~3"
    assert "layer=1" in matrices["link"]
    assert matrices["text"].split()


def test_facts_that_do_not_apply_are_left_out(origins):
    open_page("masks", input="synthetic", n=12, masks_part="download")
    assert not {"layer", "text"} & origins[0].keys()
    assert origins[0]["model"] == "Locally correlated"


def test_a_long_text_is_cut(origins):
    open_page("masks", text="word " * 300, masks_part="download")
    assert len(origins[0]["text"]) == export_metadata.MAX_TEXT + 1
