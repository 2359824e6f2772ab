"""Tests of the Entropy page's sentences, with numbers on either side of each threshold."""

import math
from dataclasses import replace

import pytest

import attention_core as ac
from app.figures.lines.spread import spread
from attention_core.experiments.distance import BIASED, PLAIN, TURNED
from attention_core.experiments.entropy_length import EntropyRow
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


def test_a_growing_number_of_effective_keys_is_dilution():
    assert growth.sentence(line(n16=4.0, n256=31.0), None) == (
        "**Attention dilutes as the text grows**, because softmax gives every key some weight. A query spreads its "
        "weight over 4 effective keys (25% of all keys) at 16 tokens, and over 31 (12%) at 256. With equal weights, "
        "the number would grow faster, and the share would stay at 100%."
    )
    causal = growth.sentence(line(n16=4.0, n256=31.0), None, causal=True)
    assert (
        "over 4 effective keys (59% of all keys) at 16 tokens, and over 31 (32%) at 256. With equal weights" in causal
    )
    scaled = growth.sentence(line(n16=4.0, n256=31.0), line(n16=6.0, n256=9.5), 64)
    assert scaled.endswith(
        "at 100%. **Log n scaling slows the dilution**: the number grows only from 6 to 9.5. It flattens rows with "
        "fewer than 64 keys and sharpens longer rows."
    )
    level = growth.sentence(line(n16=4.0, n256=31.0), line(n16=6.0, n256=6.2), 64)
    assert "**Log n scaling prevents the dilution**: the number changes from 6 to 6.2. It flattens rows" in level
    sharper = growth.sentence(line(n16=4.0, n256=4.1), line(n16=6.0, n256=5.0), 64)
    assert "With log n scaling, the number falls from 6 to 5. It flattens rows" in sharper
    flatter = growth.sentence(line(n16=4.0, n256=4.1), line(n16=6.0, n256=9.5))
    assert "With equal weights" not in flatter
    assert flatter.endswith("With log n scaling, the number changes from 6 to 9.5.")


@pytest.mark.parametrize(("last", "slower"), [(60.0, True), (61.5, False), (64.0, False)])
def test_a_falling_share_of_the_keys_is_slower_than_uniform_attention(last, slower):
    assert ("With equal weights" in growth.sentence(line(n16=4.0, n256=last), None)) == slower


@pytest.mark.parametrize(("last", "dilutes"), [(3.9, False), (4.0, False), (4.19, False), (4.21, True)])
def test_attention_dilutes_only_if_the_number_of_effective_keys_clearly_grows(last, dilutes):
    text = growth.sentence(line(n16=4.0, n256=last), None)
    assert ("**Attention dilutes as the text grows**" in text) == dilutes
    still = "**Attention does not dilute on this input**, because the additional keys get little weight. A query"
    assert text.startswith(still) != dilutes


def test_uniform_attention_spreads_over_all_keys_that_a_query_can_attend_to():
    assert [uniform_entropy(n, causal=False) for n in (1, 3)] == [0, pytest.approx(math.log(3))]
    assert [uniform_entropy(n, causal=True) for n in (1, 3)] == [0, pytest.approx((math.log(2) + math.log(3)) / 3)]
    keys = growth.effective_keys(spread((n, uniform_entropy(n, causal=False)) for n in (16, 256, 256)))
    assert keys.middle == keys.low == keys.high == (pytest.approx(16), pytest.approx(256))


def test_a_single_length_does_not_grow():
    assert growth.sentence(spread([]), None) == "Measuring **softmax** …"
    assert growth.sentence(line(n16=3.4), line(n16=1.0)) == (
        "A query spreads its weight over 3.4 effective keys at 16 tokens. Measuring growth needs at least three "
        "lengths. Use a longer input."
    )
    assert "Log n scaling" not in growth.sentence(line(n16=4.0, n256=31.0), line(n16=1.0))


def power(exponent):
    return spread((n, (n / 16) ** exponent) for n in (16, 64, 256))


@pytest.mark.parametrize(
    ("exponent", "verdict"),
    [
        (0.94, "n^0.94, so dividing by n makes the row sums shrink with length."),
        (0.96, "n^0.96, so dividing by n keeps the row sums nearly constant."),
        (1.04, "n^1.04, so dividing by n keeps the row sums nearly constant."),
        (1.06, "n^1.06, so dividing by n makes the row sums grow with length."),
    ],
)
def test_dividing_by_n_is_judged_by_how_the_total_grows(exponent, verdict):
    assert normalizer.sentence({"softmax": power(1.5), "relu2": power(exponent)}) == (
        f"**Squared ReLU**'s Z grows as {verdict} From 16 to 256 tokens, **softmax**'s normaliser Z grows "
        "approximately as n^1.50."
    )


def test_a_total_whose_growth_bends_across_the_verdict_gets_none():
    bent = spread((2**i, 2 ** (min(i, 4) * 0.5 + max(0, i - 4) * 1.2)) for i in range(9))
    told = normalizer.sentence({"softmax": power(1.5), "relu2": bent})
    assert "overall but as n^1.20 over the 4 longest lengths, so no single exponent fits." in told
    straight = spread((2**i, 2 ** (i * 1.2)) for i in range(9))
    assert "makes the row sums grow with length." in normalizer.sentence({"softmax": power(1.5), "relu2": straight})


def test_where_a_total_has_no_growth_it_is_not_judged():
    alone = normalizer.sentence({"softmax": power(1.5), "relu2": spread([(16, 1.0)])})
    assert alone.endswith("approximately as n^1.50.")
    short = {"softmax": spread([(16, 1.0)]), "relu2": power(1)}
    assert normalizer.sentence(short) == (
        "These lengths are too few or too close together to measure growth. Use a longer input."
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
        (2.0, "after division by n.**"),
        (1.0, "after division by a constant.**"),
        (1.49, "No divisor clearly gives the smallest change of the row sum."),
        (1.51, "No divisor clearly gives the smallest change of the row sum."),
        (1.48, "after division by a constant.**"),
        (1.52, "after division by n.**"),
        (1 / 1.51, "No divisor clearly gives the smallest change of the row sum."),
    ],
)
def test_the_least_drift_is_named_where_it_is_clear(fixed, words):
    assert words in drift.least({"length": 1.5, "squared": 4.0, "fixed": fixed}, "row sum")


def test_a_total_that_is_gone_has_drifted_most():
    assert "after division by n².**" in drift.least({"length": 0.0, "squared": 9.0, "fixed": 0.0}, "row sum")


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (0.0, "λ² cancels, so no weight changes."),
        (
            2e-16,
            "λ² cancels in the division by the row sum, so no weight changes by more than "
            "2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻¹⁶.",
        ),
    ],
)
def test_the_sentence_on_a_factor_states_both_effects(moved, words):
    softmax, relu2 = spread([(1.0, 2.5), (4.0, 1.25), (8.0, 1.0)]), spread([(1.0, 3.5), (4.0, 3.25), (8.0, 3.0)])
    assert factor.sentence(4.0, softmax, relu2, moved, "bits") == (
        "Multiplying all logits by λ = 4 changes the entropy of **softmax** from 2.50 to 1.25 bits. The entropy of "
        f"**squared ReLU** ÷ row sum stays at 3.25 bits: {words}"
    )
    for lacks in ((softmax, spread([(1.0, 1.0)])), (spread([(1.0, 1.0)]), relu2), (spread([(4.0, 1.0)]), relu2)):
        assert factor.sentence(4.0, *lacks, 0.0, "bits") == "Measuring λ = 4 …"


@pytest.mark.parametrize(
    ("room", "written", "words"),
    [
        (255, True, "This text has only 255 tokens. Measure instead:"),
        (1, True, "This text has only 1 token. Measure instead:"),
        (256, True, ""),
        (255, False, ""),
    ],
)
def test_a_text_that_ends_early_is_said_to(room, written, words):
    assert hint(room, written=written) == words


def question_up_to(longest, *, causal):
    """Return the page's question about a sequence of 16 tokens."""
    source = SyntheticSource(SyntheticSpec(n=16, heads=1, d=8))
    return Question(
        source=source,
        record=source.load(),
        head=None,
        causal=causal,
        room=longest,
        longest=longest,
        seeds=1,
        options=EntropyOptions(),
    )


def test_quartiles_are_a_range_of_some():
    assert quartiles([0.0, 1.0, 2.0, 3.0, 4.0]) == "1.00 … 3.00"
    assert quartiles([]) is None


def test_rows_of_every_length_are_told_where_the_future_is_hidden():
    asked = question_up_to(128, causal=True)
    assert how_lengths_are_made(asked).endswith("attends to only i + 1 keys, so averages include rows with few keys.")
    assert "few keys" not in how_lengths_are_made(replace(asked, causal=False))


def test_weights_are_compared_beyond_half_of_the_tokens():
    assert distance.weights_by_form({TURNED: 0.4}, 41) == (
        "RoPE rotates a query and a distant key by different angles, which can lower their logit. "
        "With RoPE, keys more than 20.5 tokens away get on average 40% of the **softmax** weight of adjacent keys."
    )
    assert distance.weights_by_form({TURNED: 0.25, PLAIN: 0.5, BIASED: 0.125}, 40) == (
        "RoPE rotates a query and a distant key by different angles, which can lower their logit. "
        "With RoPE, keys more than 20 tokens away get on average 25% of the **softmax** weight of adjacent keys. "
        "Without RoPE, the share is 50%: **RoPE makes attention more local here**. With ALiBi, the share is 12%."
    )


def test_logits_are_described_in_each_form():
    logits = {PLAIN: (0.5, 0.4), TURNED: (1.0, -2.0)}
    assert distance.logits_by_form(logits, 40) == (
        "With RoPE, the mean logit changes from 1 for adjacent keys to \N{MINUS SIGN}2 for keys more than 20 tokens "
        "away. Without RoPE, the mean logit changes from 0.50 to 0.40."
    )
    assert distance.logits_by_form({TURNED: (1.0, -2.0)}, 40).endswith("for keys more than 20 tokens away.")


@pytest.mark.parametrize(
    ("far", "words", "times"),
    [(0.5, "is 25% of", "8"), (2.08, "is 104% of", "1.9"), (2.2, "**grows** to 110% of", "1.8")],
)
def test_a_size_is_compared_with_its_bound(far, words, times):
    text = distance.size_and_bound((2.0, far), (10.0, 4.0), 40).replace("\N{NO-BREAK SPACE}", " ")
    assert text == (
        "RoPE limits how large |logit| can be. For a key more than 20 tokens from the query, this limit is 40% of the "
        f"limit for a key next to the query. The actual |logit| {words} its value for a key next to the query. "
        f"The limit (the bound in the chart) is {times} times the actual |logit|."
    )
    rises = distance.size_and_bound((2.0, far), (4.0, 5.0), 40)
    assert rises.startswith(
        "RoPE limits how large |logit| can be. For a key more than 20 tokens from the query, this limit is 125% of the "
        "limit for a key next to the query."
    )


def test_rope_alone_is_described_at_the_largest_distance():
    assert distance.alone(30, 0.25, -0.1) == (
        "RoPE limits how large |logit| can be. At a distance of 30 tokens, this limit is 25% of the limit at distance "
        "0. The dot product of a query and an equal key is \N{MINUS SIGN}10% of its value at distance 0."
    )


def test_entropies_are_listed_for_the_measured_forms():
    both = {PLAIN: 2.25, TURNED: 1.5}
    assert distance.entropy_by_form(both, "bits") == (
        "The mean entropy of a row is 1.50 bits with RoPE and 2.25 without RoPE."
    )
    assert distance.entropy_by_form({TURNED: 1.5}, "nats") == "The mean entropy of a row is 1.50 nats."
    assert distance.entropy_by_form(both | {BIASED: 1.0}, "nats") == (
        "The mean entropy of a row is 1.50 nats with RoPE, 2.25 without RoPE, and 1.00 with ALiBi."
    )


@pytest.mark.parametrize(("longest", "told"), [(128, True), (3, False)])
def test_too_few_lengths_ask_for_a_longer_input_only_once_all_are_measured(monkeypatch, longest, told):
    monkeypatch.setattr(
        growth, "lines_of", lambda question: {"softmax": growth.Line(attention=ac.get("softmax"), name="", label="")}
    )
    monkeypatch.setattr(growth, "by_length", lambda rows, word, question, measure: line(n16=1.0))
    source = SyntheticSource(SyntheticSpec(n=16, heads=1, d=8))
    asked = Question(
        source=source,
        record=source.load(),
        head=None,
        causal=False,
        room=128,
        longest=longest,
        seeds=1,
        options=EntropyOptions(),
    )
    assert (growth.describe([], asked) == "So far, fewer than 3 lengths are measured.") == told


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ""),
        ({"linear": 204.0}, ""),
        (
            {"linear": 205.0, "local": 256.0},
            "**Linear** (80% of all keys) stays close to uniform attention, because the products of its features "
            "differ little from key to key.",
        ),
        (
            {"linear": 256.0, "cosine": 256.0},
            "**Linear** (100% of all keys) and **Cosine** (100% of all keys) stay close to uniform attention, because "
            "the products of their features differ little from key to key.",
        ),
    ],
)
def test_linear_attentions_close_to_uniform_attention_are_named(keys, expected, monkeypatch):
    attentions = [ac.get(key) for key in ("softmax", "linear", "cosine", "local")]
    lines = {each.word: growth.Line(attention=each, name=each.title, label=each.title) for each in attentions}
    monkeypatch.setattr(growth, "lines_of", lambda question: lines)
    rows = [
        EntropyRow(
            variant=key,
            n=256,
            head=0,
            seed=0,
            entropy=math.log(value),
            normalised=0.0,
            sparsity=0.0,
            row_low=1.0,
            row_high=1.0,
        )
        for key, value in keys.items()
    ]
    asked = question_up_to(256, causal=False)
    assert growth.evenness(rows, asked) == expected
