"""Tests of the Entropy page's sentences, with numbers on either side of each threshold."""

import math
from dataclasses import replace

import pytest

from app.figures.spread import spread
from attention_core.experiments.distance import PLAIN, TURNED
from attention_core.inputs import SyntheticSource, SyntheticSpec
from pages.entropy import distance, drift, factor, growth, normalizer
from pages.entropy.options import EntropyOptions, Question, hint, quartiles
from pages.entropy.take_away import how_lengths_are_made


def line(**values):
    """Return a curve through values named by length; 16 and 256 alone get a point at 64 on the line against log n."""
    points = {int(n[1:]): value for n, value in values.items()}
    if set(points) == {16, 256}:
        points[64] = (points[16] + points[256]) / 2
    return spread(points.items())


NATS = {"unit": "nats", "per_nat": 1.0, "causal": False}
FLAT = {"n16": math.log(16), "n256": math.log(256)}
"""Entropies of uniform attention."""


def test_an_entropy_that_rises_is_told_beside_uniform_attentions():
    half = line(n16=1.0, n256=1.0 + math.log(16) / 2)
    assert growth.sentence(half, None, **NATS) == (
        "From n = 16 to 256 **softmax**'s entropy rises from 1.00 to 2.39 nats, 0.50× as steeply as uniform "
        "attention's."
    )
    third = line(n16=1.0, n256=1.0 + math.log(16) / 4)
    assert growth.sentence(half, third, **NATS).endswith(
        "0.50× as steeply as uniform attention's; with the log n scale 0.25×."
    )


def test_an_entropy_that_falls_is_not_called_steep():
    falls, third = line(n16=2.0, n256=1.5), line(n16=1.0, n256=1.0 + math.log(16) / 4)
    assert growth.sentence(falls, None, **NATS) == (
        "From n = 16 to 256 **softmax**'s entropy falls from 2.00 to 1.50 nats."
    )
    assert growth.sentence(falls, third, **NATS) == (
        "From n = 16 to 256 **softmax**'s entropy falls from 2.00 to 1.50 nats; with the log n scale its slope is "
        "0.25× uniform attention's."
    )
    assert "falls" not in growth.sentence(line(n16=2.0, n256=2.0), None, **NATS)


def test_a_slope_is_the_same_in_bits():
    bits = line(**{n: h / math.log(2) for n, h in FLAT.items()})
    words = growth.sentence(bits, bits, "bits", per_nat=1 / math.log(2), causal=False)
    assert "rises from 4.00 to 8.00 bits, 1.00× as steeply" in words
    assert words.endswith("with the log n scale 1.00×.")


def test_without_the_future_uniform_attention_is_the_mean_of_what_each_query_sees():
    assert growth.uniform([1, 3], causal=False) == [0, pytest.approx(math.log(3))]
    assert growth.uniform([1, 3], causal=True) == [0, pytest.approx((math.log(2) + math.log(3)) / 3)]
    causal = line(n16=growth.uniform([16], causal=True)[0], n256=growth.uniform([256], causal=True)[0])
    assert "1.00× as steeply" in growth.sentence(causal, None, "nats", per_nat=1.0, causal=True)
    assert "1.00× as steeply" not in growth.sentence(causal, None, **NATS)


def test_a_single_length_does_not_grow():
    assert growth.sentence(spread([]), None, **NATS) == "Measuring **softmax** …"
    assert growth.sentence(line(n16=1.234), line(n16=1.0), **NATS) == (
        "At n = 16 **softmax**'s entropy is 1.23 nats. A longer input shows how it grows."
    )
    assert "log n scale" not in growth.sentence(line(**FLAT), line(n16=1.0), **NATS)


def test_lengths_too_close_to_each_other_give_no_slope():
    told = growth.sentence(line(n3=0.5, n5=0.6, n7=0.75), None, **NATS)
    assert told == (
        "At n = 3 **softmax**'s entropy is 0.50 nats, at n = 7 0.75. These lengths are too close to show how it grows: "
        "give a longer input."
    )
    assert "steeply" in growth.sentence(line(n3=0.5, n5=0.6, n12=0.75), None, **NATS)
    assert "steeply" not in growth.sentence(line(n3=0.5, n12=0.75), None, **NATS)


def test_a_curve_that_bends_is_said_to_bend_with_its_slope_over_the_last_lengths():
    lengths = [2.0**i for i in range(3, 10)]

    def curve(late):
        logs = [min(i, 3) * 0.2 + max(0, i - 3) * late for i in range(len(lengths))]
        return spread((n, math.log(2) * each) for n, each in zip(lengths, logs, strict=True))

    assert "bends" not in growth.sentence(curve(0.25), None, **NATS)
    told = growth.sentence(curve(0.9), None, **NATS)
    assert told.endswith(
        "The curve bends: over its last 4 lengths, from n = 64 to 512, its slope is 0.90× uniform attention's."
    )


def power(exponent):
    return spread((n, (n / 16) ** exponent) for n in (16, 64, 256))


@pytest.mark.parametrize(
    ("exponent", "verdict"),
    [
        (0.94, "0.94: dividing by n makes its rows fade in long texts."),
        (0.96, "0.96: dividing by n suits it."),
        (1.04, "1.04: dividing by n suits it."),
        (1.06, "1.06: dividing by n lets its rows swell in long texts."),
    ],
)
def test_dividing_by_n_is_judged_by_how_the_total_grows(exponent, verdict):
    assert normalizer.sentence({"softmax": power(1.5), "relu2": power(exponent)}) == (
        "While n grows 16-fold, from 16 to 256, **softmax**'s normaliser Z grows 64-fold: about as n to the power "
        f"1.50. **Squared ReLU**'s grows as n to the power {verdict}"
    )


def test_a_total_whose_growth_bends_across_the_verdict_gets_none():
    bent = spread((2**i, 2 ** (min(i, 4) * 0.5 + max(0, i - 4) * 1.2)) for i in range(9))
    told = normalizer.sentence({"softmax": power(1.5), "relu2": bent})
    assert told.endswith("but 1.20 over the last 4: no one exponent describes it.")
    straight = spread((2**i, 2 ** (i * 1.2)) for i in range(9))
    assert normalizer.sentence({"softmax": power(1.5), "relu2": straight}).endswith("swell in long texts.")


def test_where_a_total_has_no_growth_it_is_not_judged():
    alone = normalizer.sentence({"softmax": power(1.5), "relu2": spread([(16, 1.0)])})
    assert alone.endswith("about as n to the power 1.50.")
    short = {"softmax": spread([(16, 1.0)]), "relu2": power(1)}
    assert normalizer.sentence(short) == (
        "These lengths are too few or too close to tell how the totals grow: give a longer input."
    )


@pytest.mark.parametrize(
    ("log", "words"),
    [(0.0, "1"), (5.0, "148"), (699.0, "3.73\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10³⁰³"), (701.4, "e^701")],
)
def test_a_total_beyond_every_float_is_told_by_its_logarithm(log, words):
    assert normalizer.readable(log) == words


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        (2.0, "**n** drifts least"),
        (1.0, "**the constant** drifts least"),
        (1.49, "none drifts clearly least"),
        (1.51, "none drifts clearly least"),
        (1.48, "**the constant** drifts least"),
        (1.52, "**n** drifts least"),
        (1 / 1.51, "none drifts clearly least"),
    ],
)
def test_the_least_drift_is_named_where_it_is_clear(fixed, words):
    assert words in drift.least({"length": 1.5, "squared": 4.0, "fixed": fixed})


def test_a_total_that_is_gone_has_drifted_most():
    assert "**n²** drifts least" in drift.least({"length": 0.0, "squared": 9.0, "fixed": 0.0})


def test_a_factor_is_told_by_what_it_moves():
    softmax, relu2 = spread([(1.0, 2.5), (4.0, 1.25), (8.0, 1.0)]), spread([(1.0, 3.5), (4.0, 3.25), (8.0, 3.0)])
    assert factor.sentence(4.0, softmax, relu2, 2e-16, "bits") == (
        "At λ = 4 **softmax**'s entropy goes from 2.50 to 1.25 bits. **Squared ReLU** divided by its row sum stays at "
        "3.25: the largest change of any weight is 2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻¹⁶."
    )
    for lacks in ((softmax, spread([(1.0, 1.0)])), (spread([(1.0, 1.0)]), relu2), (spread([(4.0, 1.0)]), relu2)):
        assert factor.sentence(4.0, *lacks, 0.0, "bits") == "Measuring λ = 4 …"


@pytest.mark.parametrize(("last", "falls"), [(2.4951, False), (2.4949, True), (2.6, False)])
def test_what_two_decimals_do_not_show_does_not_fall(last, falls):
    words = factor.power_sentence(spread([(1.0, 2.5), (8.0, last)]), "nats", 0.0)
    assert words.startswith("From p = 1 to p = 8 the entropy " + ("falls" if falls else "stays at 2.50 nats"))
    assert "move no weight by more than 0 at any of these powers" in words


@pytest.mark.parametrize(
    ("room", "written", "words"),
    [
        (255, True, "This text ends at 255 tokens. To see further:"),
        (1, True, "This text ends at 1 token. To see further:"),
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
    assert how_lengths_are_made(asked).endswith("so a head's mean holds short rows and long ones.")
    assert "short rows" not in how_lengths_are_made(replace(asked, causal=False))


def test_the_distance_a_weight_is_kept_over_is_half_the_tokens():
    assert distance.compared({TURNED: 0.4}, 41) == (
        "Beyond n / 2 = 20.5 tokens, **softmax** with RoPE gives a key 40% of the weight it gives to one next door."
    )
    assert distance.compared({TURNED: 0.25, PLAIN: 0.5}, 40) == (
        "Beyond n / 2 = 20 tokens, **softmax** with RoPE gives a key 25% of the weight it gives to one next door, "
        "without it 50%: **RoPE makes attention more local here**."
    )


def test_logits_are_told_near_and_far_in_both_forms():
    assert distance.scored({TURNED: (1.0, -2.0), PLAIN: (0.5, 0.4)}) == (
        "Its mean logit is 1 next door and \N{MINUS SIGN}2 there, without RoPE 0.50 and 0.40."
    )


@pytest.mark.parametrize(
    ("far", "words"),
    [
        (0.5, ", and the size itself 25%, 8× below its bound."),
        (2.08, ", and the size itself 104%, 1.9× below its bound."),
        (2.2, "; the size itself **grows** to 110%, 1.8× below its bound."),
    ],
)
def test_a_size_is_told_beside_its_bound(far, words):
    said = distance.bounded((2.0, far), (10.0, 4.0)).replace("\N{NO-BREAK SPACE}", " ")
    assert said == "What bounds the logits' size with RoPE is there 40% of what it is next door" + words


def test_entropies_are_told_in_the_forms_there_are():
    both = {PLAIN: 2.25, TURNED: 1.5}
    assert distance.spread_out(both, "bits") == "The entropy of its rows is 1.50 bits with RoPE and 2.25 without."
    assert distance.spread_out({TURNED: 1.5}, "nats") == "The entropy of its rows is 1.50 nats."
