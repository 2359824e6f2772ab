"""Tests of the record of first paints: medians and quartiles by page."""

from benchmarks import paint
from benchmarks.paint import Visit


def test_the_record_has_medians_and_quartiles_of_each_page_and_visit():
    found = [("home", "first", Visit(100, 200, 300, complete, 0.01, 50)) for complete in (1000, 2000, 9000)]
    found += [("home", "second", Visit(100, 200, 300, 500, 0, 0))] * 3
    first, second = paint.report(found, rounds=3).splitlines()[-2:]
    assert first == "| home | first | 0.10 | 0.20 | 0.30 | **2.00** (1.00–9.00) | 0.05 | 0.010 |"
    assert "| second |" in second
    assert "**0.50** (0.50–0.50)" in second
