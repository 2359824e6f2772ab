"""Tests of the record of first paints: medians and quartiles by page, targets, and the start of a server."""

from benchmarks import paint
from benchmarks.paint import Start, Visit

VISITS = [("home", "first", Visit(100, 200, 300, complete, 0.01, 50)) for complete in (1000, 2000, 9000)]
VISITS += [("home", "second", Visit(100, 200, 300, 500, 0, 0))] * 3
VISITS += [
    (name, ordinal, Visit(100, 200, 300, complete, 0, 0))
    for name, complete in zip(paint.EMPTY_APPS, (400, 800), strict=True)
    for ordinal in ("first", "second")
] * 3
STARTS = [Start(1, 2, seconds) for seconds in (3, 5, 9)]


def test_the_record_has_medians_and_quartiles_of_each_page_and_visit():
    lines = paint.report(VISITS, STARTS, rounds=3).splitlines()
    assert "| home | first | 0.10 | 0.20 | 0.30 | **2.00** (1.00–9.00) | 0.05 | 0.010 |" in lines
    [second] = [line for line in lines if "| home | second | 0.10" in line]
    assert "**0.50** (0.50–0.50)" in second


def test_the_record_compares_the_medians_with_the_targets():
    lines = paint.report([*VISITS, ("error", "first", VISITS[-1][2])] * 2, STARTS, rounds=6).splitlines()
    targets = lines[lines.index("## Targets") :]
    assert "| home | first | ≤ 1.0 | 2.00 | missed | 0.30 | 1.70 | 0.40 | 0.80 |" in targets
    assert "| home | second | ≤ 0.5 | 0.50 | met | 0.30 | 0.20 | 0.40 | 0.80 |" in targets
    assert not [line for line in targets if line.startswith("| error")]


def test_the_record_names_the_pages_with_layout_shift():
    def verdict(shift):
        visits = [(page, "first", Visit(1, 1, 1, 1, shift, 0)) for page in ("picture", "model")] * 2
        return next(line for line in paint.report(visits, STARTS, 2).splitlines() if line.startswith("Layout shift"))

    assert verdict(0.099) == "Layout shift below 0.1 on every page: met."
    assert verdict(0.1) == "Layout shift below 0.1 on every page: missed on picture (0.10), model (0.10)."


def test_the_record_has_the_median_start_of_a_server():
    assert paint.report(VISITS, STARTS, 3).splitlines()[-1] == "| 1.00 | 2.00 | 5.00 |"
