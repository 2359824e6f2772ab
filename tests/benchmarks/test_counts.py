"""Tests that no variant counts more operations or memory than its record allows; no time is measured."""

import json

import pytest

from benchmarks import counts
from benchmarks.cases import cases

RECORD = counts.load()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_no_count_exceeds_its_record_by_more_than_a_tenth(case):
    assert counts.regressions(case.label, counts.count_case(case), RECORD) == []


def test_every_recorded_case_still_exists():
    assert RECORD.keys() <= {case.label for case in cases()}, "python -m benchmarks.counts --record"


@pytest.mark.parametrize(("now", "expected"), [(110, []), (111, ["local: bytes grew from 100 to 111, by 11 %."])])
def test_an_increase_by_more_than_a_tenth_is_reported(now, expected):
    assert counts.regressions("local", {"bytes": now}, {"local": {"bytes": 100}}) == expected


@pytest.mark.parametrize("record", [{}, {"local": {"bytes": 1}}])
def test_a_case_without_a_record_asks_for_one(record):
    (text,) = counts.regressions("local", {"bytes": 1, "multiply-adds": 2}, record)
    assert text == "local has no record; write it with: python -m benchmarks.counts --record"


def test_the_command_writes_the_record_and_reports_increases(tmp_path, monkeypatch, capsys):
    (case,) = cases(["pyramid"])
    monkeypatch.setattr(counts, "cases", lambda: [case])
    out = tmp_path / "counts.json"
    assert counts.main(["--out", str(out)]) == 1
    assert "pyramid has no record" in capsys.readouterr().out
    assert counts.main(["--record", "--out", str(out)]) == 0
    assert counts.main(["--out", str(out)]) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record == counts.load(out)
    # Halve only the product of the record: a forward pass that costs more than its record must be reported.
    record["pyramid"]["forward multiply-adds at n = 256"] //= 2
    out.write_text(json.dumps(record), encoding="utf-8")
    assert counts.main(["--out", str(out)]) == 1
    assert "pyramid: forward multiply-adds at n = 256 grew from" in capsys.readouterr().out
