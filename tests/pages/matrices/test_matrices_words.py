"""Tests of the Matrices page's sentences, with numbers on either side of each threshold."""

import dataclasses
import itertools
import math

import pytest

import attention_core as ac
from app.jobs.cached import View, matrix
from attention_core.analysis.matrix.head_scores import HeadScores
from attention_core.analysis.matrix.telling_row import Share
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec
from attention_core.metrics.passport import NEGATIVE
from pages.matrices.words import (
    Rival,
    caption,
    changed,
    head_in_words,
    headline,
    in_one_sentence,
    leading,
    looks_at,
    overall,
)

SMALL = View(source=SyntheticSource(SyntheticSpec(n=16, heads=1, d=8)), head=0, causal=False, special=True)


def rivals(zero=0.95, **errors):
    return [Rival(name=name, error=error, zero=zero) for name, error in errors.items()]


@pytest.mark.parametrize("order", [1, -1])
def test_the_closest_and_the_farthest_are_told_apart(order):
    given = rivals(Near=0.12, Middle=0.4, Far=1.78)[::order]
    assert headline("softmax", given) == (
        "On this input the output closest to softmax's is that of **Near**, off by 12%; the farthest that of **Far**, "
        "off by 178%. The plain mean of the values would be off by 95%."
    )


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_an_error_that_is_not_finite_is_named_and_not_ranked_in_any_order(broken):
    given = rivals(Near=0.12, Far=1.78, Broken=broken, Also=math.nan)
    told = {headline("softmax", list(order)) for order in itertools.permutations(given)}
    assert told == {
        "On this input the output closest to softmax's is that of **Near**, off by 12%; the farthest that of **Far**, "
        "off by 178%. The plain mean of the values would be off by 95%. No error can be computed for **Also, Broken**: "
        "some of its numbers are not finite. Smaller queries and keys help."
    }
    alone = headline("softmax", rivals(Broken=broken))
    assert alone.startswith("No error can be computed for **Broken**")
    lost = headline("softmax", rivals(zero=math.nan, A=0.1))
    assert lost == "The output of softmax itself is not finite."


def test_what_reads_alike_is_not_ranked():
    words = headline("softmax", rivals(A=0.121, B=0.119, C=0.5, D=0.502))
    assert "that of **A, B**, off by 12%" in words
    assert "that of **C, D**, off by 50%" in words


@pytest.mark.parametrize(("error", "better"), [(0.94, True), (0.95, False), (1.78, False)])
def test_one_variant_is_neither_closest_nor_without_the_plain_mean(error, better):
    words = headline("softmax", rivals(Linear=error))
    assert f"the output of **Linear** is off by {error:.0%} from softmax's" in words
    assert "closest" not in words
    assert ("; the plain mean of the values would be off by 95%." in words) == better
    assert (": no closer than the plain mean of the values, which is off by 95%." in words) != better


@pytest.mark.parametrize(("least", "better"), [(0.94, True), (0.951, False), (1.2, False)])
def test_none_is_called_closest_that_is_no_closer_than_the_plain_mean(least, better):
    words = headline("softmax", rivals(A=least, B=1.78))
    assert ("the output closest to softmax's is that of **A**" in words) == better
    assert ("no output comes closer to softmax's than the plain mean of the values" in words) != better
    assert f"of **A**{', off' if better else ' is off'} by {least:.0%}" in words
    assert "178%" in words
    assert "95%" in words


@pytest.mark.parametrize(("error", "better"), [(0.3, True), (0.95, False)])
def test_where_all_are_equally_far_none_is_named(error, better):
    words = headline("softmax", rivals(A=error, B=error))
    assert f"the output of **all of these** is off by {error:.0%} from softmax's" in words
    assert ("would be off by 95%" in words) == better
    assert ("no closer than" in words) != better


def test_a_reference_of_its_own_is_named_and_set_apart():
    words = headline("shared-QK softmax", rivals(Reformer=0.0))
    assert "**Reformer** is off by 0% from shared-QK softmax's" in words
    assert words.endswith("What is held against shared-QK softmax is not ranked beside the others.")
    assert "ranked" not in headline("softmax", rivals(Linear=0.2))


def found(attention):
    return matrix(SMALL, attention)


def test_only_what_shares_a_reference_is_ranked():
    chosen = [ac.get(key) for key in ("softmax", "reformer", "linear", "local")]
    words = overall({a: found(a) for a in chosen})
    one, other = words.split("On this input")[1:]
    assert "Reformer" not in one
    assert "softmax's" in one
    assert "Reformer" in other
    assert "shared-QK softmax's" in other
    assert overall({chosen[0]: found(chosen[0])}).startswith("Add a variant")


def test_rows_that_sum_to_one_are_told_in_mass_and_others_in_norms():
    local, relu2, trig = (ac.get("local", window=2), ac.get("relu2"), ac.get("performer", kind="trig", features=8))
    assert "of its mass on other tokens than softmax does" in in_one_sentence(local, found(local))
    for attention in (relu2, trig):
        words, numbers = in_one_sentence(attention, found(attention)), found(attention)
        assert f"is off by {numbers.passport.relative_error:.0%} from softmax's" in words
        assert f"its output by {numbers.output_error:.0%}" in words
        assert "of its mass on other tokens" not in words
        assert ("of its mass is negative" in words) == (attention is trig)
    assert "equally weighted keys" in in_one_sentence(ac.get("softmax"), found(ac.get("softmax")))


def test_a_panel_says_which_error_and_from_what():
    for key, difference, begins in (
        ("local", False, "matrix error 0."),
        ("local", True, "minus softmax · matrix error 0."),
        ("reformer", True, "minus shared-QK softmax · matrix error 0."),
        ("softmax", True, "entropy\N{NO-BREAK SPACE}"),
    ):
        attention = ac.get(key)
        assert caption(attention, found(attention), difference=difference, hidden=False).startswith(begins)
    reformer = ac.get("reformer")
    numbers = dataclasses.replace(found(reformer).passport, relative_error=0.25, entropy=1.5)
    told = dataclasses.replace(found(reformer), passport=numbers)
    told = dataclasses.replace(told, output_error=0.5)
    assert caption(reformer, told, difference=False, hidden=False) == (
        "matrix error 0.25 · output error 0.50 · compared with shared-QK softmax · "
        "entropy\N{NO-BREAK SPACE}1.50\N{NO-BREAK SPACE}nats"
    )


def test_a_panel_says_which_tokens_each_error_covers_when_special_tokens_are_hidden():
    words = caption(*measured("local", output=0.75, relative_error=0.125, **WHOLE), difference=False, hidden=True)
    assert words.startswith("matrix error 0.12 (shown tokens) · output error 0.75 (all tokens) · entropy")


def test_a_panel_whose_weights_are_not_finite_says_so_and_what_helps():
    broken = {"row_sum_min": math.nan, "row_sum_max": math.nan, "relative_error": math.nan, "entropy": math.nan}
    words = caption(*measured("local", output=math.nan, **broken), difference=False, hidden=True)
    assert words == "some weights are not finite: smaller queries and keys help"


def test_what_is_no_closer_than_the_plain_mean_is_told_from_the_nearest_to_the_farthest():
    given = rivals(zero=0.5, Far=1.78, Near=0.62, Middle=0.9)
    assert headline("softmax", given) == (
        "On this input no output comes closer to softmax's than the plain mean of the values, which is off by 50%: "
        "that of **Near** is off by 62%, that of **Far**, the farthest, by 178%."
    )


def test_variants_are_told_by_their_output_and_beside_the_plain_mean():
    chosen = [ac.get(key) for key in ("softmax", "linear", "local")]
    linear, local = (dataclasses.replace(found(a), uniform_error=0.9) for a in chosen[1:])
    given = {
        chosen[0]: found(chosen[0]),
        chosen[1]: dataclasses.replace(linear, output_error=0.7),
        chosen[2]: dataclasses.replace(local, output_error=0.3),
    }
    assert overall(given) == (
        "On this input the output closest to softmax's is that of **Local · window 16**, off by 30%; the farthest that "
        "of **Linear**, off by 70%. The plain mean of the values would be off by 90%."
    )


def measured(key, *, output=0.25, zero=0.75, **numbers):
    attention = ac.get(key)
    told = found(attention)
    passport = dataclasses.replace(told.passport, **numbers)
    return attention, dataclasses.replace(told, passport=passport, output_error=output, uniform_error=zero)


WHOLE = {"row_sum_min": 1.0, "row_sum_max": 1.0, "negative_mass": 0.0}


def test_one_variant_is_told_with_its_numbers():
    assert in_one_sentence(*measured("softmax", entropy=2.0)) == (
        "**Softmax** spreads a query's weight like 7.4 equally weighted keys (entropy 2.00 nats)."
    )
    assert in_one_sentence(*measured("local", total_variation=0.4, **WHOLE)) == (
        "**Local · window 16** puts 40% of its mass on other tokens than softmax does; its output is off by 25% (the "
        "plain mean of the values by 75%)."
    )
    in_norms = (
        "The matrix of **Local · window 16** is off by 40% from softmax's, its output by 25% (the plain mean of the "
        "values by 75%)."
    )
    halved = {"relative_error": 0.4, "row_sum_min": 0.5, "row_sum_max": 1.0}
    assert in_one_sentence(*measured("local", **halved, negative_mass=0.0)) == in_norms
    assert in_one_sentence(*measured("local", **halved, negative_mass=NEGATIVE)) == in_norms
    assert in_one_sentence(*measured("local", **halved, negative_mass=0.125)) == (
        f"{in_norms} 12.5% of its mass is negative."
    )


@pytest.mark.parametrize(("negative", "tail"), [(NEGATIVE, ""), (0.125, " · 12.5% negative")])
@pytest.mark.parametrize(
    ("key", "difference", "begins"),
    [
        ("local", False, "matrix error 0.33 · output error 0.25"),
        ("local", True, "minus softmax · matrix error 0.33 · output error 0.25"),
        ("reformer", False, "matrix error 0.33 · output error 0.25 · compared with shared-QK softmax"),
        ("reformer", True, "minus shared-QK softmax · matrix error 0.33 · output error 0.25"),
    ],
)
def test_a_panels_line_is_its_error_its_entropy_and_its_negative_mass(key, difference, begins, negative, tail):
    attention, told = measured(key, relative_error=1 / 3, entropy=1.5, negative_mass=negative)
    words = caption(attention, told, difference=difference, hidden=False)
    assert words == f"{begins} · entropy\N{NO-BREAK SPACE}1.50\N{NO-BREAK SPACE}nats{tail}"


@pytest.mark.parametrize(
    ("low", "high", "tail"),
    [(0.25, 0.75, " · rows sum to 0.25 … 0.75"), (0.997, 1.002, ""), (1.5, 1.5, " · rows sum to 1.5")],
)
def test_a_panels_line_tells_what_rows_sum_to_that_do_not_share_out_one(low, high, tail):
    told = {"relative_error": 1 / 3, "entropy": 1.5, "negative_mass": 0.0}
    words = caption(*measured("sigmoid", **told, row_sum_min=low, row_sum_max=high), difference=False, hidden=False)
    assert words == f"matrix error 0.33 · output error 0.25 · entropy\N{NO-BREAK SPACE}1.50\N{NO-BREAK SPACE}nats{tail}"


@pytest.mark.parametrize("difference", [False, True])
def test_softmax_itself_has_no_error(difference):
    words = caption(*measured("softmax", entropy=1.5), difference=difference, hidden=False)
    assert words == "entropy\N{NO-BREAK SPACE}1.50\N{NO-BREAK SPACE}nats"


LABELS = ("the", "cat", "the (2)")


def shares(**weights):
    return [Share(key=LABELS.index(key.replace("_", " ").replace("2", "(2)")), weight=w) for key, w in weights.items()]


def test_a_row_of_softmax_names_its_heaviest_keys_or_that_there_are_none():
    assert looks_at(shares(cat=0.612, the_2=0.05), LABELS) == "looks most at “cat” 0.61, “the (2)” 0.05"
    assert looks_at([], LABELS) == "spread so thin that no key has 0.005 of it"


def test_what_was_lost_and_gained_is_told_where_there_is_any():
    lost, gained = shares(cat=-0.21), shares(the=0.04, the_2=0.031)
    both = "lost most: “cat” −0.21 · gained most: “the” +0.04, “the (2)” +0.03"
    assert changed(lost, gained, LABELS, "softmax") == both
    assert changed(lost, [], LABELS, "softmax") == "lost most: “cat” −0.21"
    assert changed([], gained, LABELS, "softmax") == "gained most: “the” +0.04, “the (2)” +0.03"
    assert changed([], [], LABELS, "softmax") == "within 0.005 of softmax on every key"
    assert changed(lost, gained, LABELS, "shared-QK softmax") == f"against shared-QK softmax: {both}"
    assert changed([], [], LABELS, "shared-QK softmax") == "within 0.005 of shared-QK softmax on every key"


def head(**scores):
    return HeadScores(layer=4, head=7, **dict.fromkeys(HeadScores.columns(), 0.25) | scores)


def test_a_head_is_told_with_all_its_scores_and_a_dash_for_what_cannot_be():
    assert head_in_words(head(induction=math.nan, distance=3.14)) == (
        "layer 4, head 7: induction –, previous token 0.25, first-token sink 0.25, entropy (nats) 0.25, "
        "mean distance (tokens) 3.1"
    )


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("induction", "a repeated token gives 0.25 of its weight"),
        ("previous", "gives 0.25 of its weight, in the mean, to the token just before"),
        ("sink", "gives 0.25 of its weight, in the mean, to the first token"),
        ("entropy", "most decided: an entropy of 0.25 nats"),
        ("distance", "it looks 0.25 tokens away"),
    ],
)
def test_the_head_that_comes_first_is_named_with_its_score(by, words):
    told = leading([head(), head(**{by: 0.5})], by)
    assert told.startswith("**Layer 4, head 7** ")
    assert words in told


def test_a_score_that_the_input_cannot_tell_says_why():
    assert "No token repeats in this input" in leading([head(induction=math.nan)], "induction")
    assert leading([head(sink=math.nan)], "sink").endswith("first-token sink is not told.")
