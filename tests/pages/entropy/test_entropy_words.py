"""Tests of the Entropy page's sentences, with numbers on either side of each threshold."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from driver import full_text

import attention_core as ac
from app.figures.lines.curve import Curve
from app.figures.lines.curves import BAND, curves
from app.figures.lines.spread import spread
from attention_core.experiments import normalizer_length
from attention_core.experiments.distance import BIASED, PLAIN, ROTATED, equal_weight
from attention_core.experiments.entropy_length import EntropyRow
from attention_core.formatting import percent
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource
from attention_core.inputs.positions import ALIBI
from attention_core.metrics.entropy import uniform_entropy
from pages.entropy import distance, distance_words, factor, growth, growth_words, normalizer
from pages.entropy.options import EntropyOptions, Measurement
from pages.entropy.view import MAX_TITLE, band_note, quartiles, sample_note, short_text_message, with_scale_names


def line(**values):
    """Return a curve through values named by length; 16 and 256 alone get a point at 64 on the line against log n."""
    points = {int(n[1:]): value for n, value in values.items()}
    if set(points) == {16, 256}:
        points[64] = (points[16] + points[256]) / 2
    return spread(points.items())


LOG_N = "Log n scaling multiplies every logit by log n / log 64, which is 1 at 64 tokens."
WITH_LOG_N = "With log n scaling, the number of effective keys"
TOO_FEW = "A longer input shows the effect of the length more clearly:"


@pytest.mark.parametrize(
    ("last", "finding", "share"),
    [
        (31.0, "a smaller share", "12%"),
        (60.8, "a smaller share", "24%"),
        (61.2, "about the same share", "24%"),
        (67.0, "about the same share", "26%"),
        (67.4, "a larger share", "26%"),
    ],
)
def test_the_effective_keys_and_their_share_of_all_keys_are_compared(last, finding, share):
    assert growth.share_texts(line(n16=4.0, n256=last), causal=False) == ["25% of all keys", "", share]
    assert full_text(growth_words.main_finding(line(n16=4.0, n256=last), None)) == (
        f"**On this input, attention spreads over 4 effective keys at 16 tokens and {last:.0f} at 256 tokens, "
        f"{finding} of all keys.** At "
        f"256 tokens, the weight is spread as widely as equal weights on {last:.0f} keys (the number of effective "
        "keys)."
    )


def test_causal_shares_are_of_the_keys_that_a_query_can_attend_to():
    text = full_text(growth_words.main_finding(line(n16=4.0, n256=31.0), None, causal=True))
    first, last = (number / math.exp(uniform_entropy(n, causal=True)) for n, number in ((16, 4.0), (256, 31.0)))
    assert ", a smaller share of all keys up to the query.**" in text
    texts = growth.share_texts(line(n16=4.0, n256=31.0), causal=True)
    assert texts == [f"{first:.0%}", "", f"{last:.0%}"]


def test_a_single_length_has_no_text_about_its_share():
    assert growth.share_texts(line(n16=4.0), causal=False) == []


@pytest.mark.parametrize(("is_text", "where"), [(True, "**In this text, "), (False, "**On this input, ")])
def test_the_finding_is_about_this_text_or_input(is_text, where):
    for last in (4.0, 31.0, 64.0, 80.0):
        text = full_text(growth_words.main_finding(line(n16=4.0, n256=last), None, is_text=is_text))
        assert text.startswith(f"{where}attention ")


@pytest.mark.parametrize(("few", "share"), [(22.2, "7%"), (22.6, "8%")])
def test_shares_that_are_equal_as_texts_are_not_called_different(few, share):
    """Check two shares that differ by more than 5%."""
    text = full_text(growth_words.main_finding(spread([(300, few), (332, few), (364, 25.0)]), None))
    assert ("about the same share" in text) == (share == "7%")
    assert growth.share_texts(spread([(300, few), (364, 25.0)]), causal=False) == [f"{share} of all keys", "7%"]


@pytest.mark.parametrize(
    ("keys", "n", "texts"),
    [
        (22.4, 300, ("22", "7%")),
        (7.998, 64, ("8.0", "12%")),
        (10.4, 16, ("10.4", "65%")),
        (1500.3, 4096, ("1,500", "37%")),
        (1.0, 4096, ("1", "0.02%")),
        (16.0, 16, ("16", "100%")),
    ],
)
def test_a_number_of_effective_keys_and_its_share_agree(keys, n, texts):
    """Check a share below one digit, one halfway, a number that needs a third digit, and the ends."""
    assert growth_words.keys_and_share(keys, n, causal=False) == texts
    assert growth_words.keys_and_share(10.4, 16, causal=True)[0] == "10", "no reader can compute this share"


@pytest.mark.parametrize("n", [16, 300, 4096])
def test_a_reader_computes_the_share_from_the_number_of_effective_keys(n):
    for i in range(1000):
        keys = n ** (i / 999)
        text, share = growth_words.keys_and_share(keys, n, causal=False)
        value = float(share.removesuffix("%"))
        unit = 1.0 if value >= 1 else 10 ** math.floor(math.log10(value))
        assert abs(value - 100 * keys / n) <= 0.5 * unit + 1e-9
        assert abs(value - 100 * float(text.replace(",", "")) / n) <= 0.51 * unit + 1e-9


@pytest.mark.parametrize(
    ("base", "causal", "marked"),
    [(16, False, False), (32, False, True), (32, True, False), (128, False, True), (256, False, False)],
)
def test_the_length_at_which_log_n_scaling_changes_nothing_is_marked_between_the_ends(base, causal, marked):
    scaled = ac.get("softmax_log_n", base_length=base)
    assert growth.base_length(scaled) == base
    assert growth.base_length(ac.get("relu2")) == growth.base_length(ac.get("softmax")) == 0
    found = growth.log_n_mark(base, [16, 64, 256], causal=causal)
    assert found == ((base, f"at {base} tokens, log n<br>scaling changes nothing") if marked else None)
    assert growth.log_n_mark(base, [], causal=causal) is None
    assert growth.log_n_mark(0, [16, 64, 256], causal=causal) is None


def test_a_label_has_the_last_value_if_measured():
    assert growth.label_with_end("Softmax", (3.5, 22.4)) == "Softmax: 22"
    assert growth.label_with_end("Softmax", (0.22, 0.075), share=True) == "Softmax: 7.5%"
    assert growth.label_with_end("Softmax", ()) == "Softmax"
    assert growth.label_with_end("Softmax", (3.5, math.nan)) == "Softmax"


@pytest.mark.parametrize(
    ("base", "effect"),
    [
        (16, "This sharpens the weights at more than 16 tokens."),
        (64, "This flattens the weights at fewer than 64 tokens and sharpens them at more than 64 tokens."),
        (256, "This flattens the weights at fewer than 256 tokens."),
    ],
)
def test_the_effect_of_log_n_scaling_depends_on_its_reference_length(base, effect):
    for last in (31.0, 4.0):
        text = full_text(growth_words.main_finding(line(n16=4.0, n256=last), line(n16=6.0, n256=9.5), base))
        assert text.endswith(f" {LOG_N.replace('64', str(base))} {effect}")


@pytest.mark.parametrize(
    ("base", "effect"),
    [
        (16, "of queries with fewer than 16 keys and sharpens those of queries with more keys."),
        (64, "of queries with fewer than 64 keys and sharpens those of queries with more keys."),
        (256, "at fewer than 256 tokens."),
    ],
)
def test_causal_log_n_scaling_depends_on_the_keys_of_each_query(base, effect):
    text = full_text(growth_words.main_finding(line(n16=4.0, n256=31.0), line(n16=6.0, n256=9.5), base, causal=True))
    assert text.endswith(f" This flattens the weights {effect}")


@pytest.mark.parametrize(
    ("softmax", "scaled", "expected"),
    [
        ({"n16": 4.0, "n256": 31.0}, {"n16": 6.0, "n64": 10.0, "n256": 9.5}, "stays between 6 and 10"),
        ({"n16": 4.0, "n256": 31.0}, {"n16": 6.04, "n64": 10.4, "n256": 9.5}, "stays between 6 and 10"),
        ({"n16": 4.0, "n256": 31.0}, {"n16": 6.04, "n64": 8.02, "n256": 7.5}, "stays between 6.0 and 8.0"),
        ({"n16": 4.0, "n256": 31.0}, {"n16": 9.6, "n64": 10.4, "n256": 9.7}, "stays between 9.6 and 10.4"),
        ({"n16": 4.0, "n64": 9.0, "n256": 31.0}, {"n16": 6.0, "n64": 7.0}, "grows only from 6 to 7"),
        ({"n16": 6.8, "n256": 124.0}, {"n16": 14.0, "n256": 145.0}, "grows only from 14 to 145"),
        ({"n16": 4.0, "n256": 4.5}, {"n16": 10.6, "n256": 11.3}, "grows only from 10.6 to 11.3"),
        ({"n16": 2.6, "n256": 14.0}, {"n16": 5.75, "n256": 23.0}, "grows only from 6 to 23"),
        ({"n16": 4.0, "n256": 4.19}, {"n16": 6.0, "n256": 6.0}, None),
        ({"n16": 4.0, "n256": 8.0}, {"n16": 6.0, "n256": 11.5}, None),
        ({"n16": 4.0, "n256": 8.0}, {"n16": 6.0, "n256": 11.3}, "grows only from 6 to 11"),
        ({"n16": 4.0, "n256": 8.0}, {"n16": 6.0}, None),
    ],
)
def test_log_n_scaling_is_a_finding_if_the_number_of_effective_keys_grows_less(softmax, scaled, expected):
    text = growth_words.log_n_finding(line(**softmax), line(**scaled))
    whole = f"**{WITH_LOG_N} {expected}.**"
    assert text == (whole if expected else "")
    assert growth_words.log_n_finding(line(**softmax), None) == ""


@pytest.mark.parametrize(("last", "is_equal"), [(6.0, True), (6.29, True), (6.31, False)])
def test_nearly_equal_numbers_of_effective_keys_are_written_once(last, is_equal):
    text = growth_words.log_n_finding(line(n16=4.0, n256=31.0), line(n16=6.0, n256=last))
    once = f"**{WITH_LOG_N} stays at about 6.**"
    assert (text == once) == is_equal


def test_only_the_title_of_a_logarithmic_axis_says_so():
    lines, axes = with_scale_names([], {"x_title": "tokens n", "y_title": "entropy", "log_x": True, "log_y": False})
    assert (lines, axes["x_title"], axes["y_title"]) == ([], "tokens n (log scale)", "entropy")
    titles = {
        "x_title": "x" * (MAX_TITLE - len(" (log scale)")),
        "y_title": "y" * (MAX_TITLE - len(" (log scale)") + 1),
    }
    _lines, axes = with_scale_names([], {**titles, "log_x": True, "log_y": True})
    assert axes["x_title"] == titles["x_title"] + " (log scale)"
    assert axes["y_title"] == titles["y_title"]


@pytest.mark.parametrize(("last", "spreads"), [(3.9, False), (4.0, False), (4.19, False), (4.21, True)])
def test_attention_spreads_only_if_the_number_of_effective_keys_clearly_grows(last, spreads):
    text = full_text(growth_words.main_finding(line(n16=4.0, n256=last), None))
    assert ("attention spreads over 4 effective keys at 16 tokens and 4.2 at 256 tokens, " in text) == spreads
    still = (
        "**On this input, attention does not spread over more keys as the length grows.** At 256 tokens, the weight "
    )
    assert text.startswith(still) != spreads
    assert text.endswith(f"equal weights on {last:.2g} keys (the number of effective keys).")


def test_uniform_attention_spreads_over_all_keys_that_a_query_can_attend_to():
    assert [uniform_entropy(n, causal=False) for n in (1, 3)] == [0, pytest.approx(math.log(3))]
    assert [uniform_entropy(n, causal=True) for n in (1, 3)] == [0, pytest.approx((math.log(2) + math.log(3)) / 3)]
    keys = growth.effective_keys(spread((n, uniform_entropy(n, causal=False)) for n in (16, 256, 256)))
    assert keys.middle == keys.low == keys.high == (pytest.approx(16), pytest.approx(256))


@pytest.mark.parametrize("causal", [False, True])
def test_the_largest_entropy_of_a_lesson_is_that_of_the_line_of_equal_weights(causal, monkeypatch):
    """Check the upper bound of guesses. Under a causal mask, query i can attend to only i + 1 keys."""
    request = measurement_up_to(64, causal=causal)
    monkeypatch.setattr(growth, "_measurement", lambda screen: request)
    expected = sum(math.log(i + 1 if causal else 64) for i in range(64)) / 64
    assert growth.MEASURES["last_entropy"].high(None) == pytest.approx(expected)
    assert growth.CURVES["entropy"].high(None) == pytest.approx(expected)
    monkeypatch.setattr(growth, "lines_by_word", lambda measurement: {"softmax": SOFTMAX_LINE})
    monkeypatch.setattr(growth, "by_length", lambda *_arguments: line(n16=1.0, n64=2.0))
    [_softmax, equal], _axes = growth.chart([], replace(request, options=EntropyOptions(measure="entropy")))
    assert equal.name == "equal weights on all keys" + " up to the query" * causal
    assert equal.y[-1] == pytest.approx(expected)


def test_a_single_length_does_not_grow():
    assert full_text(growth_words.main_finding(spread([]), None)) == "Measuring **softmax** …"
    assert full_text(growth_words.main_finding(line(n16=3.4), line(n16=1.0))) == (
        "At 16 tokens, a query's weight is as spread out as equal weights on 3.4 keys. Measuring growth needs at "
        "least three lengths. Use a longer input."
    )
    assert "og n scaling" not in full_text(growth_words.main_finding(line(n16=4.0, n256=31.0), line(n16=1.0)))


def test_log_n_scaling_is_described_up_to_the_longest_measured_text_during_a_run():
    text = full_text(growth_words.main_finding(line(n16=4.0, n256=31.0), line(n16=6.0, n64=8.0), 64))
    assert text.endswith(f" {LOG_N} This flattens the weights at fewer than 64 tokens.")


@pytest.mark.parametrize(("last", "changes"), [(256.2, False), (256.3, True)])
def test_log_n_scaling_of_equal_weights_is_said_to_do_nothing(last, changes):
    text = full_text(growth_words.main_finding(line(n16=16.0, n256=256.0), line(n16=16.0, n256=last), 512))
    assert ("This flattens the weights" in text) == changes


def power(exponent):
    return spread((n, (n / 16) ** exponent) for n in (16, 64, 256))


@pytest.mark.parametrize(
    ("exponent", "verdict", "found"),
    [
        (0.94, "{start} as large, but {relu2} become only 14 times as large. {weights} falls by 15%.", "n⁰·⁹⁴"),
        (
            0.96,
            "Yes. From 16 to 256 tokens, {relu2} grow about as fast as n, so {weights} stays nearly constant.",
            "n⁰·⁹⁶",
        ),
        (
            1.04,
            "Yes. From 16 to 256 tokens, {relu2} grow about as fast as n, so {weights} stays nearly constant.",
            "n¹·⁰⁴",
        ),
        (1.06, "{start} as large, and {relu2} become 19 times as large. {weights} grows.", "n¹·⁰⁶"),
        (0.02, "{start} as large, but {relu2} become only 1.1 times as large. {weights} falls by 93%.", "n⁰·⁰²"),
        (0.01, "{start} as large, but {relu2} hardly grow. {weights} falls by 94%.", "n⁰·⁰¹"),
    ],
)
def test_dividing_by_n_is_judged_by_how_the_total_grows(exponent, verdict, found):
    weights = "the sum of the weights" if ", so {weights}" in verdict else "The sum of the weights"
    relu2, start = "the row totals of squared ReLU", "No. From 16 to 256 tokens, n becomes 16 times"
    assert full_text(normalizer.main_finding({"softmax": power(1.5), "relu2": power(exponent)})) == (
        f"**{verdict.format(relu2=relu2, weights=weights, start=start)}** Softmax divides each row by its total. "
        "Squared ReLU attention can divide by n instead, which is simpler. Squared ReLU attention uses relu(logit)² "
        "where softmax uses exp(logit). A row's total is the sum of these terms. Divided by n, the total is the sum of "
        f"the row's weights. The totals of squared ReLU grow approximately as {found}. The output is the weighted mean "
        "of the values, multiplied by the sum of the weights."
    )


def test_a_rounded_exponent_of_zero_has_no_minus_sign():
    text = full_text(normalizer.main_finding({"softmax": power(-0.003), "relu2": power(-0.002)}))
    assert "fall approximately" not in text
    assert text.count("n⁰·⁰⁰") == 1


@pytest.mark.parametrize(
    ("exponent", "words"), [(-0.8, "fall approximately as n⁻⁰·⁸⁰."), (0.2, "grow approximately as n")]
)
def test_totals_with_a_negative_exponent_fall(exponent, words):
    relu2 = full_text(normalizer.main_finding({"softmax": power(0.1), "relu2": power(exponent)}))
    assert f"The totals of squared ReLU {words}" in relu2
    softmax = full_text(normalizer.main_finding({"softmax": power(exponent), "relu2": spread([(16, 1.0)])}))
    assert f"The totals of softmax {words}" in softmax


@pytest.mark.parametrize(
    ("tail", "headline", "explanation"),
    [
        (
            1.2,
            "n becomes 256 times as large, but the row totals of squared ReLU become only 111 times as large. The "
            "sum of the weights falls by 56%.",
            "n¹·²⁰",
        ),
        (
            1.02,
            "Only for long inputs. From 32 to 256 tokens, the row totals of squared ReLU grow about as fast as n, but "
            "not over all lengths.",
            "n¹·⁰²",
        ),
        (
            1.5,
            "the row totals of squared ReLU do not grow as one power of n, so the sum of the weights changes.",
            "n¹·⁵⁰",
        ),
    ],
)
def test_a_total_with_changing_growth_is_judged_by_its_ends(tail, headline, explanation):
    bent = spread((2**i, 2 ** (min(i, 4) * 0.5 + max(0, i - 4) * tail)) for i in range(9))
    message = full_text(normalizer.main_finding({"softmax": power(1.5), "relu2": bent}))
    assert message.startswith(f"**{headline}**" if tail < 1.05 else f"**No. From 1 to 256 tokens, {headline}**")
    assert re.search(f"ver the 4 longest .* as {explanation}[,.]", message)
    assert not normalizer._has_one_power(bent)
    assert normalizer._has_one_power(power(tail))
    assert ("so no power of n is a good divisor." in message) == (tail > 1.05)


@pytest.mark.parametrize(
    ("last", "words"), [(1.0, ""), (0.8, "the totals are 8.5% below it."), (1.25, "the totals are 9.3% above it.")]
)
def test_a_total_that_leaves_its_fit_at_the_end_is_described(last, words):
    lengths = (16, 32, 64, 128, 256)
    relu2 = spread((n, (n / 16) ** 0.5 * (last if n == 256 else 1.0)) for n in lengths)
    text = full_text(normalizer.main_finding({"softmax": power(1.5), "relu2": relu2}))
    assert ("This fit is not exact: at 256 tokens, " in text) == (last != 1.0)
    assert words in text


def test_a_total_without_growth_gets_no_verdict():
    alone = full_text(normalizer.main_finding({"softmax": power(1.5), "relu2": spread([(16, 1.0)])}))
    assert alone.endswith("approximately as n¹·⁵⁰.")
    short = {"softmax": spread([(16, 1.0)]), "relu2": power(1)}
    assert full_text(normalizer.main_finding(short)) == (
        "These lengths are too few or too close together to measure growth. Use a longer input."
    )


@pytest.mark.parametrize(
    ("log", "words"),
    [(0.0, "1"), (5.0, "148"), (699.0, "3.73\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10³⁰³"), (701.4, "e^701")],
)
def test_a_total_beyond_every_float_is_shown_by_its_logarithm(log, words):
    assert normalizer.readable(log) == words


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (0.0, "and no weight changes."),
        (2e-16, "and no weight changes by more than 2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻¹⁶."),
    ],
)
def test_the_sentence_on_a_factor_states_both_effects(moved, words):
    softmax, relu2 = spread([(1.0, 2.5), (4.0, 1.25), (8.0, 1.0)]), spread([(1.0, 3.5), (4.0, 3.25), (8.0, 3.0)])
    assert full_text(factor.main_finding(4.0, softmax, relu2, moved, "bits", 1 / math.log(2))) == (
        "**Multiplying all logits by λ = 4 sharpens softmax from 5.7 to 2.4 effective keys. The spread of squared "
        "ReLU stays the same.** The entropy of softmax changes from 2.50 to 1.25 bits. The entropy of squared ReLU "
        "stays at 3.25 bits, because a factor λ on all logits multiplies each term of a row by λ². If the terms are "
        "divided by the "
        f"row sum, λ² cancels, {words}"
    )
    for lacks in ((softmax, spread([(1.0, 1.0)])), (spread([(1.0, 1.0)]), relu2), (spread([(4.0, 1.0)]), relu2)):
        assert full_text(factor.main_finding(4.0, *lacks, 0.0, "bits")) == "Measuring λ = 4 …"


@pytest.mark.parametrize(
    ("steered", "finding"),
    [
        (
            2.44,
            "sharpens softmax from 12 to 11 effective keys. The spread of squared ReLU stays the same.** The "
            "entropy of softmax changes from 2.50 to 2.44 nats.",
        ),
        (2.494, "hardly changes the entropy of softmax.** The entropy of softmax changes from 2.50 to 2.49 nats."),
        (
            2.496,
            "hardly changes the entropy of softmax.** The entropy of softmax is 2.50 nats with and without this "
            "factor.",
        ),
        (
            2.56,
            "flattens softmax from 12 to 13 effective keys. The spread of squared ReLU stays the same.** The "
            "entropy of softmax changes from 2.50 to 2.56 nats.",
        ),
    ],
)
def test_the_finding_on_a_factor_follows_the_entropy_of_softmax(steered, finding):
    softmax, relu2 = spread([(1.0, 2.5), (4.0, steered)]), spread([(1.0, 3.5), (4.0, 3.5)])
    text = full_text(factor.main_finding(4.0, softmax, relu2, 0.0, "nats"))
    assert text.startswith(
        f"**Multiplying all logits by λ = 4 {finding} The entropy of squared ReLU stays at 3.50 nats, because a"
    )


@pytest.mark.parametrize(
    ("room", "written", "words"),
    [
        (255, True, f"This text has only 255 tokens. {TOO_FEW}"),
        (1, True, f"This text has only 1 token. {TOO_FEW}"),
        (256, True, ""),
        (255, False, ""),
    ],
)
def test_a_short_text_is_reported(room, written, words):
    assert short_text_message(room, written=written) == words


def measurement_up_to(longest, *, causal):
    """Return the page's measurement on a sequence of 16 tokens."""
    source = SyntheticSource(SyntheticSpec(n=16, heads=1, d=8))
    return Measurement(
        source=source,
        record=source.load(),
        head=None,
        causal=causal,
        max_tokens=longest,
        longest=longest,
        seeds=1,
        options=EntropyOptions(),
    )


def test_quartiles_are_a_range_and_missing_without_values():
    assert quartiles([0.0, 1.0, 2.0, 3.0, 4.0]) == "1.00 … 3.00"
    assert quartiles([]) is None


def test_weights_are_compared_beyond_half_of_the_tokens():
    assert full_text(distance_words.weights_by_form({ROTATED: (1.0, 0.4)}, 41)) == (
        "RoPE rotates a query and a distant key by different angles, which changes their logit (scaled dot "
        "product). With RoPE, keys more than 20.5 tokens away get 40% of an adjacent key's weight, "
        "averaged over these distances in each head."
    )
    weights = {ROTATED: (0.02, 0.005), PLAIN: (0.04, 0.02), BIASED: (0.16, 0.02)}
    assert full_text(distance_words.weights_by_form(weights, 40)) == (
        "**RoPE makes attention more local here.** RoPE rotates a query and a distant key by different angles, which "
        "changes their logit (scaled dot product). RoPE lowers the weight of an adjacent key from 4% to 2%. Keys more "
        "than 20 tokens away get 25% of an adjacent key's weight with RoPE, and 50% without, "
        "averaged over these distances in each head. With ALiBi, they get 12%."
    )


@pytest.mark.parametrize(
    ("after", "words"), [(0.03, "raises the weight of an adjacent key from 2% to 3%."), (0.0209, ""), (0.0191, "")]
)
def test_a_change_of_the_weight_of_an_adjacent_key_is_described(after, words):
    text = distance_words.adjacent_weight({ROTATED: (after, 0.01), PLAIN: (0.02, 0.01)})
    assert text == (f"RoPE {words}" if words else "")


def test_a_causal_mask_lowers_the_weights_of_distant_keys_even_if_all_weights_are_equal():
    """Check 4 tokens, of which two queries have a key at distance 2, and one query has a key at distance 3."""
    uniform = {i: equal_weight(i, 4, causal=True) for i in range(4)}
    assert uniform[1] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert (uniform[3], equal_weight(3, 4, causal=False)) == (0.25, 0.25)
    text = full_text(distance_words.weights_by_form({ROTATED: (1.0, 0.4)}, 4, uniform=uniform))
    assert text.endswith(
        " in each head. With equal weights, they would get 69%, because only later queries have distant keys, "
        "and their weight is divided among more keys."
    )
    without = distance_words.weights_by_form({ROTATED: (1.0, 0.4)}, 4, uniform={1: 0.5, 2: 0.4})
    assert "With equal weights" not in full_text(without), "no distance is above half of the tokens"


def test_logits_are_described_in_each_form():
    logits = {PLAIN: (0.5, 0.4), ROTATED: (1.0, -2.0)}
    assert full_text(distance_words.logits_by_form(logits, 40)) == (
        "**RoPE makes the mean logit fall more with distance: from 1 to \N{MINUS SIGN}2, instead of from 0.50 to "
        "0.40.** "
        "With RoPE, the mean logit is 1 for adjacent keys and \N{MINUS SIGN}2 for keys more than 20 tokens from the "
        "query. Without RoPE, the mean logit is 0.50 for adjacent keys and 0.40 for distant keys."
    )
    assert full_text(distance_words.logits_by_form({ROTATED: (1.0, -2.0)}, 40)).endswith(
        "for keys more than 20 tokens from the query."
    )
    assert full_text(distance_words.logits_by_form({ROTATED: (1.0, 1.1)}, 40)).startswith(
        "**With RoPE, distant keys have a higher mean"
    )
    less = full_text(distance_words.logits_by_form({PLAIN: (1.0, -2.0), ROTATED: (0.5, 0.4)}, 40))
    assert less.startswith(
        "**RoPE makes the mean logit fall less with distance: from 0.50 to 0.40, instead of from 1 to"
    )
    close = full_text(distance_words.logits_by_form({PLAIN: (5.02, 5.01), ROTATED: (5.04, 5.01)}, 40))
    assert close.startswith("**With RoPE, the mean logit is the same for distant and adjacent keys.**")
    tiny = full_text(distance_words.logits_by_form({PLAIN: (5.02, 5.01), ROTATED: (6.0, 5.0)}, 40))
    assert tiny.startswith("**With RoPE, distant keys have a lower mean logit than adjacent keys.**")
    rising = full_text(distance_words.logits_by_form({PLAIN: (0.4, 0.5), ROTATED: (1.0, -2.0)}, 40))
    assert rising.startswith("**With RoPE, distant keys have a lower mean logit than adjacent keys.** ")
    alone = full_text(distance_words.logits_by_form({ROTATED: (1.0, -2.0)}, 40))
    assert alone.startswith("**With RoPE, distant keys have a lower mean logit than adjacent keys.** ")
    for plain in ((0.9, -2.2), (1.0, -2.0), (0.5, -2.4)):
        text = full_text(distance_words.logits_by_form({PLAIN: plain, ROTATED: (1.0, -2.0)}, 40))
        assert text.startswith("**RoPE hardly changes how much the mean logit falls with distance: from 1 to")
    same = full_text(distance_words.logits_by_form({ROTATED: (1.0, 1.001)}, 40))
    assert same.startswith("**With RoPE, the mean logit is the same for distant and adjacent keys.**")


@pytest.mark.parametrize(
    ("far", "finding", "size", "times"),
    [
        (0.5, "distant keys have smaller logits than adjacent keys, in absolute value", 25, "8"),
        (1.88, "distant keys have smaller logits than adjacent keys, in absolute value", 94, "2.1"),
        (1.92, "distant and adjacent keys have logits of about the same absolute value", 96, "2.1"),
        (2.08, "distant and adjacent keys have logits of about the same absolute value", 104, "1.9"),
        (2.2, "distant keys have larger logits than adjacent keys, in absolute value", 110, "1.8"),
    ],
)
def test_a_size_is_compared_with_its_bound(far, finding, size, times):
    text = full_text(distance_words.size_and_bound((2.0, far), (10.0, 4.0), 40)).replace("\N{NO-BREAK SPACE}", " ")
    assert text == (
        f"**With RoPE, {finding}.** The mean |logit| of distant keys (more than 20 tokens from the query) is {size}% "
        "of the mean |logit| of adjacent keys. RoPE also sets an upper bound for |logit|. The bound for distant keys "
        f"is 40% of the bound for adjacent keys. For distant keys, the bound in the chart is {times} times the "
        "actual mean |logit|."
    )
    plain = full_text(distance_words.size_and_bound((2.0, 2.2), (10.0, 4.0), 40, 6.4))
    assert " The mean |logit| of distant keys is 2.2 with RoPE and 6.4 without. RoPE also sets" in plain
    rises = full_text(distance_words.size_and_bound((2.0, far), (4.0, 5.0), 40))
    loose = full_text(distance_words.size_and_bound((2.0, far), (100 * far, 10.1 * far), 40))
    assert loose.startswith(
        "**RoPE's upper bound for |logit| is lower at large distances, but 10 times the actual logits there, so it "
        "does not make attention local.** "
    )
    assert f"**With RoPE, {finding}.** " in full_text(
        distance_words.size_and_bound((2.0, far), (100 * far, 9.9 * far), 40)
    )
    assert f"**With RoPE, {finding}.** " in full_text(
        distance_words.size_and_bound((2.0, far), (10 * far, 10.1 * far), 40)
    )
    assert "The bound for distant keys is 125% of the bound for adjacent keys." in rises


@pytest.mark.parametrize(
    ("bounds", "finding", "lowest"),
    [
        ([1.0, 0.5, 0.25], "From distance 0 to 2, RoPE lowers the upper bound for a logit steadily, by 75%.", ""),
        ([1.0, 0.491, 0.5], "From distance 0 to 2, RoPE lowers the upper bound for a logit steadily, by 50%.", ""),
        (
            [1.0, 0.489, 0.5],
            "From distance 0 to 2, RoPE lowers the upper bound for a logit by 50%, but not steadily.",
            "It is lowest (49%) at distance 1. ",
        ),
        (
            [1.0, 0.5, 0.505, 0.511, 0.25],
            "From distance 0 to 4, RoPE lowers the upper bound for a logit by 75%, but not steadily.",
            "",
        ),
        (
            [1.0, 0.75, 0.5, 0.991],
            "With RoPE, the upper bound for a logit falls to 50% at distance 2, and then rises again.",
            "",
        ),
        ([1.0, 0.991, 1.0], "RoPE alone hardly changes the upper bound for a logit at these distances.", ""),
        (
            [1.0, 0.989, 1.0],
            "With RoPE, the upper bound for a logit falls to 99% at distance 1, and then rises again.",
            "",
        ),
        (
            [1.0, 0.989, 0.992],
            "With RoPE, the upper bound for a logit falls to 99% at distance 1, and then rises again.",
            "",
        ),
    ],
)
def test_the_bound_of_rope_is_described_over_all_distances(bounds, finding, lowest):
    assert full_text(distance_words.rope_effect(bounds, [-0.1] * len(bounds))) == (
        f"**{finding}** RoPE sets an upper bound for |logit|. At distance {len(bounds) - 1}, the bound is "
        f"{percent(bounds[-1])} of the bound at distance 0. {lowest}Take a query and a key that are equal before the "
        f"rotation, with all their coordinates of the same size. At distance {len(bounds) - 1}, their dot "
        "product is \N{MINUS SIGN}10% of its value at distance 0."
    )


def test_entropies_are_listed_for_the_measured_forms():
    both = {PLAIN: 2.25, ROTATED: 1.5}
    assert distance_words.entropy_by_form(both, "bits") == (
        "The mean entropy of a row is 1.50 bits with RoPE and 2.25 without RoPE."
    )
    assert distance_words.entropy_by_form({ROTATED: 1.5}, "nats") == "The mean entropy of a row is 1.50 nats."
    assert distance_words.entropy_by_form(both | {BIASED: 1.0}, "nats") == (
        "The mean entropy of a row is 1.50 nats with RoPE, 2.25 without RoPE, and 1.00 with ALiBi."
    )


SOFTMAX_LINE = growth.Line(attention=ac.get("softmax"), name="", label="")
SO_FAR = "So far, fewer than 3 text lengths have been measured."


@pytest.mark.parametrize(("longest", "expected"), [(128, True), (3, False)])
def test_too_few_lengths_ask_for_a_longer_input_only_once_all_are_measured(monkeypatch, longest, expected):
    monkeypatch.setattr(growth, "lines_by_word", lambda measurement: {"softmax": SOFTMAX_LINE})
    monkeypatch.setattr(growth, "by_length", lambda rows, word, measurement, measure: line(n16=1.0))
    assert (full_text(growth.describe([], measurement_up_to(longest, causal=False))) == SO_FAR) == expected


def test_the_first_lengths_of_a_run_do_not_ask_for_a_longer_input():
    request = replace(measurement_up_to(128, causal=False), options=SimpleNamespace(line="median"))
    tasks = normalizer_length.tasks(request.source, longest=128)
    rows = [row for task in tasks[:3] for row in normalizer_length.run(task)]
    measured = sorted({row.n for row in rows})
    assert full_text(normalizer.describe([row for row in rows if row.n in measured[:2]], request)) == SO_FAR
    assert full_text(normalizer.describe(rows, request)) != SO_FAR


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ""),
        ({"linear": 204.0}, ""),
        (
            {"linear": 205.0, "local": 256.0},
            "**Linear** (effective keys: 80% of all keys) stays close to equal weights, because the numbers that "
            "replace softmax's exponentials differ little from key to key.",
        ),
        (
            {"linear": 256.0, "cosine": 256.0},
            "**Linear** (effective keys: 100% of all keys) and **Cosine** (effective keys: 100% of all keys) stay "
            "close to equal weights, because the numbers that replace softmax's exponentials differ little from key to "
            "key.",
        ),
    ],
)
def test_linear_attentions_close_to_uniform_attention_are_named(keys, expected, monkeypatch):
    attentions = [ac.get(key) for key in ("softmax", "linear", "cosine", "local")]
    lines = {each.word: growth.Line(attention=each, name=each.title, label=each.title) for each in attentions}
    monkeypatch.setattr(growth, "lines_by_word", lambda measurement: lines)
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
    request = measurement_up_to(256, causal=False)
    assert growth.uniform_note(rows, request) == expected


@pytest.mark.parametrize(
    ("levels", "ticks"),
    [
        ([1.0, 4.0], ["1", "1.5", "2", "3", "4"]),
        ([0.6, 2.9], ["0.75", "1", "1.5", "2"]),
        ([1.0, 6.1], None),
        ([0.4, 1.0], None),
        ([], ["1"]),
    ],
)
def test_totals_that_differ_little_have_more_ticks(levels, ticks):
    found = normalizer.level_ticks(levels)
    assert (list(found.values()) if found else None) == ticks


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (TextSource("a"), "MiniLM-L6"),
        (TextSource("a", positions=ALIBI), ""),
        (TextSource("a", model="smollm2"), ""),
        (TextSource("a", model="owner/name"), ""),
        (SyntheticSource(SyntheticSpec(n=16)), ""),
    ],
)
def test_built_in_models_without_rope_are_known(source, expected):
    assert distance.trained_without_rope(source) == expected
    assert distance.added_rope("MiniLM-L6") == (
        "**MiniLM-L6 was never trained with RoPE, so this view shows only the geometry of the rotations.** To see a "
        "model that was trained with RoPE, open [SmolLM2-135M](#?model=smollm2&causal=1)."
    )


@pytest.mark.parametrize(("at_eight", "label"), [(1.004, "Squared ReLU"), (1.1, "")])
def test_coinciding_lines_have_one_name(monkeypatch, at_eight, label):
    levels = dict(zip(factor.VARIANTS, (0.5, 1.0, at_eight), strict=True))
    monkeypatch.setattr(factor, "entropies", lambda rows, word, measurement: spread([(1.0, 1.0), (8.0, levels[word])]))
    lines, axes = factor.chart([], measurement_up_to(16, causal=False))
    assert (lines[1].label, lines[2].name_at_end) == (label, not label)
    assert list(axes["x_ticks"].values()) == ["0.25", "0.5", "1 (unchanged)", "2", "4", "8"]


@pytest.mark.parametrize(
    ("heads", "seeds", "hidden", "expected"),
    [
        (2, 1, [False], "Shaded: middle half of the heads."),
        (2, 2, [False], "Shaded: middle half of the heads and seeds."),
        (1, 2, [False, True], "Shaded: middle half of the seeds."),
        (2, 1, [False, False], "Shaded: middle half of the heads."),
        (2, 1, [False, False, False], ""),
        (2, 1, [True], ""),
        (2, 1, [], ""),
        (1, 1, [False], ""),
    ],
)
def test_bands_are_explained_once(heads, seeds, hidden, expected):
    lines = [Curve("A", [1, 2], [1, 2], low=[1, 2], high=[1, 2], hides_band=each) for each in hidden]
    assert band_note([*lines, Curve("B", [1, 2], [1, 2])], heads=heads, seeds=seeds) == expected


def test_the_number_of_sequences_at_each_length_is_named():
    request = measurement_up_to(128, causal=False)
    assert sample_note(request) == "One synthetic sequence for each length."
    assert sample_note(replace(request, seeds=2)) == "2 synthetic sequences for each length."
    assert (
        sample_note(replace(request, source=TextSource("A few words.")))
        == "Each length n uses the first n tokens of the text."
    )
    upload = SimpleNamespace(is_generated=False)
    assert sample_note(replace(request, source=upload)) == "One input, cut to each length."


def test_a_hidden_band_is_not_counted_and_not_visible():
    drawn = [Curve(name, [1, 2], [1, 2], low=[1, 2], high=[1, 2], hides_band=name == "B") for name in "AB"]
    figure = curves(drawn, x_title="", y_title="")
    assert [trace["opacity"] for trace in figure["data"] if trace.get("fill")] == [BAND, 0.0]
