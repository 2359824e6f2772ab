"""Tests of numbers as claims format them, and of the claims that an input is offered."""

import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_core import claims
from attention_core.claims import Quantity, Verdict
from attention_core.formatting import format_readable
from attention_core.inputs import SyntheticSource, SyntheticSpec

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(words):
    """Return the number that a text represents."""
    mantissa, _, power = words.replace(",", "").replace("\N{NO-BREAK SPACE}", "").partition("×10")
    return float(mantissa.replace("−", "-")) * 10.0 ** int(power.translate(RAISED) or 0)


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [
        (4.0, 3, "4"),
        (3.9987, 3, "4.00"),
        (262_144, 3, "262,144"),
        (1023.6, 3, "1,024"),
        (12_345.6, 3, "12,346"),
        (99.96, 3, "100"),
        (0.00123, 3, "0.00123"),
        (1.234e-7, 3, "1.23 × 10⁻⁷"),
        (9.9999e-8, 3, "1.00 × 10⁻⁷"),
        (-0.0456, 2, "−0.046"),
        (0.0, 3, "0"),
        (math.nan, 3, "–"),
        (math.inf, 3, "∞"),
        (-math.inf, 3, "−∞"),
        (0.1, None, "0.1"),
        (1e-5, None, "1 × 10⁻⁵"),
        (2.5e-6, None, "2.5 × 10⁻⁶"),
        (1000.0, None, "1,000"),
        (12.5, None, "12.5"),
    ],
)
def test_numbers_are_formatted_for_reading(value, digits, words):
    assert format_readable(value, digits).replace("\N{NO-BREAK SPACE}", " ") == words


@given(st.floats(1e-30, 1e15), st.integers(1, 6), st.sampled_from([-1, 1]))
def test_a_formatted_number_is_accurate_to_its_digits(size, digits, sign):
    value = sign * size
    words = format_readable(value, digits)
    assert "e" not in words
    assert read(words) == pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits) * 1.0001)


@given(st.floats(1e-8, 1e9))
def test_a_threshold_is_formatted_without_rounding_or_trailing_zeros(value):
    chosen = float(f"{value:.6g}")
    assert read(format_readable(chosen, None)) == pytest.approx(chosen, rel=1e-9)
    assert not re.search(r"\.\d*0(\D|$)", format_readable(chosen, None))


def test_claims_that_measure_lengths_are_judged_on_the_shortest_input():
    every = claims.all_claims()
    for n in (1, 8, 64):
        source = SyntheticSource(SyntheticSpec(n=n, d=8, heads=1))
        offered = claims.tasks(source)
        assert [task.key for task in offered] == [claim.key for claim in every]
        # A synthetic input keeps its length, although it could be longer; growth is measured beyond it.
        assert {task.longest for task in offered} == {claims.LONGEST}
    shortest = SyntheticSource(SyntheticSpec(n=1, d=8, heads=1))
    short = {task.key: claims.run(task)[0] for task in claims.tasks(shortest)}
    grown = {claim.key for claim in every if claim.measures_lengths}
    assert {"memory_quadruples", "linear_cost"} <= grown
    assert {key for key, outcome in short.items() if outcome.verdict is not Verdict.UNTESTABLE} == grown
    assert claims.length(SyntheticSource(SyntheticSpec(n=700, d=4, heads=1))) == claims.LONGEST
    assert claims.length(SyntheticSource(SyntheticSpec(n=9, d=4, heads=1))) == 9


def test_an_untestable_claim_has_a_reason_and_no_numbers():
    source = SyntheticSource(SyntheticSpec(n=20, d=4, heads=1, sharpness=0.0))
    [task] = claims.tasks(source, keys=["cosine_closest"])
    [outcome] = claims.run(task)
    assert (outcome.key, outcome.claim.key, outcome.rows) == ("cosine_closest", "cosine_closest", ())
    assert (outcome.verdict, outcome.numbers, outcome.untestable_reason.needs) == (Verdict.UNTESTABLE, {}, None)
    assert "Choose an input with sharper attention" in " ".join(outcome.sentences).format(**outcome.formatted_numbers)


def test_tasks_of_chosen_claims_are_unique_and_in_claim_order():
    source = SyntheticSource(SyntheticSpec(n=64, d=4, heads=1))
    keys = [task.key for task in claims.tasks(source, keys=["drowning", "memory_quadruples", "drowning"])]
    assert keys == ["memory_quadruples", "drowning"]


def test_outcomes_survive_pickling():
    source = SyntheticSource(SyntheticSpec(n=40, d=4, heads=1))
    for task in claims.tasks(source, keys=["two_layers", "six_iterations"]):
        [outcome] = claims.run(task)
        [kept] = pickle.loads(pickle.dumps([outcome]))
        assert (kept.key, kept.verdict, kept.numbers, kept.rows) == (
            outcome.key,
            outcome.verdict,
            outcome.numbers,
            outcome.rows,
        )
        assert (kept.sentences, kept.formatted_numbers) == (outcome.sentences, outcome.formatted_numbers)


def test_a_share_is_formatted_in_per_cent_and_exported_as_a_fraction():
    share = Quantity("error", "matrix error", share=True)
    assert (share.format(0.4567), share.plain(0.4567)) == ("45.7%", "0.457")
    linformer = claims.claim("linformer_rank")
    assert linformer.thresholds() == {"flat": "0.15", "useful": "50%", "small": "10%"}


@pytest.mark.parametrize("claim", claims.discover().values(), ids=lambda claim: claim.key)
def test_a_finding_is_short_enough_for_a_card(claim):
    assert len(re.findall(r"{\w+}", claim.finding)) <= 4
    assert claim.finding.count(". ") <= 2
