"""Tests of the Entropy page's sentences, with numbers on either side of each threshold."""

import math
from dataclasses import replace

import pytest

from app.figures.lines.spread import spread
from attention_core.experiments.distance import BIASED, PLAIN, TURNED
from attention_core.inputs import SyntheticSource, SyntheticSpec
from attention_core.metrics.entropy import uniform_entropy
from pages.entropy import distance, drift, factor, growth, normalizer
from pages.entropy.options import EntropyOptions, Question
from pages.entropy.view import hint, how_lengths_are_made, quartiles


def line(**values):
    """Return a curve through values named by length; 16 and 256 alone get a point at 64 on the line against log n."""
    points = {int(n[1:]): value for n, value in values.items()}
    if set(points) == {16, 256}:
        points[64] = (points[16] + points[256]) / 2
    return spread(points.items())


NATS = {"unit": "nats", "per_nat": 1.0, "causal": False}
FLAT = {"n16": math.log(16), "n256": math.log(256)}
"""Entropies of uniform attention."""


def test_a_rising_entropy_is_compared_with_uniform_attention():
    half = line(n16=1.0, n256=1.0 + math.log(16) / 2)
    assert growth.sentence(half, None, **NATS) == (
        "From 16 to 256 tokens, **softmax**'s entropy rises from 1.00 to 2.39 nats: 50% of the uniform-attention slope."
    )
    quarter = line(n16=1.0, n256=1.0 + math.log(16) / 4)
    assert growth.sentence(half, quarter, **NATS).endswith(
        ": 50% of the uniform-attention slope (25% with log n scaling)."
    )


def test_a_falling_entropy_has_a_negative_slope():
    falls, quarter = line(n16=2.0, n256=2.0 - math.log(16) / 5), line(n16=1.0, n256=1.0 + math.log(16) / 4)
    assert growth.sentence(falls, None, **NATS) == (
        "From 16 to 256 tokens, **softmax**'s entropy falls from 2.00 to 1.45 nats: \N{MINUS SIGN}20% of the "
        "uniform-attention slope."
    )
    assert growth.sentence(falls, quarter, **NATS).endswith("slope (25% with log n scaling).")
    assert "falls" not in growth.sentence(line(n16=2.0, n256=2.0), None, **NATS)


def test_a_slope_is_the_same_in_bits():
    bits = line(**{n: h / math.log(2) for n, h in FLAT.items()})
    words = growth.sentence(bits, bits, "bits", per_nat=1 / math.log(2), causal=False)
    assert words.endswith(
        "rises from 4.00 to 8.00 bits: 100% of the uniform-attention slope (100% with log n scaling)."
    )


def test_without_the_future_uniform_attention_is_the_mean_of_what_each_query_sees():
    assert [uniform_entropy(n, causal=False) for n in (1, 3)] == [0, pytest.approx(math.log(3))]
    assert [uniform_entropy(n, causal=True) for n in (1, 3)] == [0, pytest.approx((math.log(2) + math.log(3)) / 3)]
    causal = line(n16=uniform_entropy(16, causal=True), n256=uniform_entropy(256, causal=True))
    assert ": 100% of" in growth.sentence(causal, None, "nats", per_nat=1.0, causal=True)
    assert ": 100% of" not in growth.sentence(causal, None, **NATS)


def test_a_single_length_does_not_grow():
    assert growth.sentence(spread([]), None, **NATS) == "Measuring **softmax** …"
    assert growth.sentence(line(n16=1.234), line(n16=1.0), **NATS) == (
        "At 16 tokens, **softmax**'s entropy is 1.23 nats. Growth needs at least three lengths. Use a longer input."
    )
    assert "log n scaling" not in growth.sentence(line(**FLAT), line(n16=1.0), **NATS)


def test_lengths_too_close_to_each_other_give_no_slope():
    assert growth.sentence(line(n3=0.5, n5=0.6, n7=0.75), None, **NATS) == (
        "From 3 to 7 tokens, **softmax**'s entropy rises from 0.50 to 0.75 nats. These lengths are too close for a "
        "slope. Use a longer input."
    )
    assert "of the uniform-attention slope" in growth.sentence(line(n3=0.5, n5=0.6, n12=0.75), None, **NATS)
    assert "of the uniform-attention slope" not in growth.sentence(line(n3=0.5, n12=0.75), None, **NATS)


def test_a_curve_that_bends_is_said_to_bend_with_its_slope_over_the_last_lengths():
    lengths = [2.0**i for i in range(3, 10)]

    def curve(late):
        logs = [min(i, 3) * 0.2 + max(0, i - 3) * late for i in range(len(lengths))]
        return spread((n, math.log(2) * each) for n, each in zip(lengths, logs, strict=True))

    assert "bends" not in growth.sentence(curve(0.25), None, **NATS)
    told = growth.sentence(curve(0.9), None, **NATS)
    assert told.endswith("The curve bends: from 64 to 512 tokens, the slope is 90%.")


def power(exponent):
    return spread((n, (n / 16) ** exponent) for n in (16, 64, 256))


@pytest.mark.parametrize(
    ("exponent", "verdict"),
    [
        (0.94, "n^0.94, so dividing by n shrinks long rows."),
        (0.96, "n^0.96, so dividing by n fits."),
        (1.04, "n^1.04, so dividing by n fits."),
        (1.06, "n^1.06, so dividing by n enlarges long rows."),
    ],
)
def test_dividing_by_n_is_judged_by_how_the_total_grows(exponent, verdict):
    assert normalizer.sentence({"softmax": power(1.5), "relu2": power(exponent)}) == (
        "From 16 to 256 tokens, **softmax**'s normaliser Z grows 64-fold, about as n^1.50. **Squared ReLU**'s grows as "
        f"{verdict}"
    )


def test_a_total_whose_growth_bends_across_the_verdict_gets_none():
    bent = spread((2**i, 2 ** (min(i, 4) * 0.5 + max(0, i - 4) * 1.2)) for i in range(9))
    told = normalizer.sentence({"softmax": power(1.5), "relu2": bent})
    assert told.endswith("overall but as n^1.20 over the last 4 lengths: no single exponent fits.")
    straight = spread((2**i, 2 ** (i * 1.2)) for i in range(9))
    assert normalizer.sentence({"softmax": power(1.5), "relu2": straight}).endswith("enlarges long rows.")


def test_where_a_total_has_no_growth_it_is_not_judged():
    alone = normalizer.sentence({"softmax": power(1.5), "relu2": spread([(16, 1.0)])})
    assert alone.endswith("about as n^1.50.")
    short = {"softmax": spread([(16, 1.0)]), "relu2": power(1)}
    assert normalizer.sentence(short) == ("These lengths are too few or too close to show growth. Use a longer input.")


@pytest.mark.parametrize(
    ("log", "words"),
    [(0.0, "1"), (5.0, "148"), (699.0, "3.73\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10³⁰³"), (701.4, "e^701")],
)
def test_a_total_beyond_every_float_is_told_by_its_logarithm(log, words):
    assert normalizer.readable(log) == words


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        (2.0, "with **÷ n**."),
        (1.0, "with **÷ constant**."),
        (1.49, "No divisor has a clearly smallest change."),
        (1.51, "No divisor has a clearly smallest change."),
        (1.48, "with **÷ constant**."),
        (1.52, "with **÷ n**."),
        (1 / 1.51, "No divisor has a clearly smallest change."),
    ],
)
def test_the_least_drift_is_named_where_it_is_clear(fixed, words):
    assert words in drift.least({"length": 1.5, "squared": 4.0, "fixed": fixed})


def test_a_total_that_is_gone_has_drifted_most():
    assert "with **÷ n²**." in drift.least({"length": 0.0, "squared": 9.0, "fixed": 0.0})


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (0.0, "every weight is unchanged."),
        (2e-16, "no weight changes by more than 2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻¹⁶."),
    ],
)
def test_the_sentence_on_a_factor_states_both_effects(moved, words):
    softmax, relu2 = spread([(1.0, 2.5), (4.0, 1.25), (8.0, 1.0)]), spread([(1.0, 3.5), (4.0, 3.25), (8.0, 3.0)])
    assert factor.sentence(4.0, softmax, relu2, moved, "bits") == (
        "At λ = 4, **softmax**'s entropy changes from 2.50 to 1.25 bits. **Squared ReLU** ÷ row sum stays at 3.25 "
        f"bits: {words}"
    )
    for lacks in ((softmax, spread([(1.0, 1.0)])), (spread([(1.0, 1.0)]), relu2), (spread([(4.0, 1.0)]), relu2)):
        assert factor.sentence(4.0, *lacks, 0.0, "bits") == "Measuring λ = 4 …"


@pytest.mark.parametrize(
    ("room", "written", "words"),
    [
        (255, True, "This text has 255 tokens. Measure"),
        (1, True, "This text has 1 token. Measure"),
        (256, True, ""),
        (255, False, ""),
    ],
)
def test_a_text_that_ends_early_is_said_to(room, written, words):
    assert hint(room, written=written) == words


def test_quartiles_are_a_range_of_some():
    assert quartiles([0.0, 1.0, 2.0, 3.0, 4.0]) == "1.00 … 3.00"
    assert quartiles([]) is None


def test_rows_of_every_length_are_told_where_the_future_is_hidden():
    source = SyntheticSource(SyntheticSpec(n=16, heads=1, d=8))
    asked = Question(
        source=source,
        record=source.load(),
        head=None,
        causal=True,
        room=128,
        longest=128,
        seeds=1,
        options=EntropyOptions(),
    )
    assert how_lengths_are_made(asked).endswith("query i attends to i + 1 keys, so the average includes short rows.")
    assert "short rows" not in how_lengths_are_made(replace(asked, causal=False))


def test_weights_are_compared_beyond_half_of_the_tokens():
    assert distance.weights_by_form({TURNED: 0.4}, 41) == (
        "With RoPE, **softmax** gives keys more than 20.5 tokens away 40% of the weight of adjacent keys."
    )
    assert distance.weights_by_form({TURNED: 0.25, PLAIN: 0.5, BIASED: 0.125}, 40) == (
        "With RoPE, **softmax** gives keys more than 20 tokens away 25% of the weight of adjacent keys. Without RoPE, "
        "it is 50%: **RoPE makes attention more local here**. With ALiBi, it is 12%."
    )


def test_logits_are_described_in_each_form():
    logits = {PLAIN: (0.5, 0.4), TURNED: (1.0, -2.0)}
    assert distance.logits_by_form(logits, 40) == (
        "With RoPE, the mean logit changes from 1 for adjacent keys to \N{MINUS SIGN}2 beyond 20 tokens. Without RoPE, "
        "it changes from 0.50 to 0.40."
    )
    assert distance.logits_by_form({TURNED: (1.0, -2.0)}, 40).endswith("beyond 20 tokens.")


@pytest.mark.parametrize(
    ("far", "words"),
    [
        (0.5, "The actual |logit| is at 25%; the bound is 8× higher."),
        (2.08, "The actual |logit| is at 104%; the bound is 1.9× higher."),
        (2.2, "The actual |logit| **grows** to 110%; the bound is 1.8× higher."),
    ],
)
def test_a_size_is_compared_with_its_bound(far, words):
    text = distance.size_and_bound((2.0, far), (10.0, 4.0), 40).replace("\N{NO-BREAK SPACE}", " ")
    assert text == f"Beyond 20 tokens, RoPE's bound on |logit| falls to 40% of its adjacent-token value. {words}"
    rises = distance.size_and_bound((2.0, far), (4.0, 5.0), 40)
    assert rises.startswith("Beyond 20 tokens, RoPE's bound on |logit| is 125% of its adjacent-token value.")


def test_rope_alone_is_described_at_the_largest_distance():
    assert distance.alone(30, 0.25, -0.1) == (
        "At 30 tokens, RoPE's bound on the logit is 25% of its value at distance 0. The product of a query and an "
        "equal key is \N{MINUS SIGN}10%."
    )


def test_entropies_are_listed_for_the_measured_forms():
    both = {PLAIN: 2.25, TURNED: 1.5}
    assert distance.entropy_by_form(both, "bits") == "The row entropy is 1.50 bits with RoPE and 2.25 without."
    assert distance.entropy_by_form({TURNED: 1.5}, "nats") == "The row entropy is 1.50 nats."
    assert distance.entropy_by_form(both | {BIASED: 1.0}, "nats") == (
        "The row entropy is 1.50 nats with RoPE, 2.25 without, and 1.00 with ALiBi."
    )
