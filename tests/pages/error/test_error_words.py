"""Tests of the Error page's sentences, with numbers on either side of each threshold."""

import csv
import io
import math
from dataclasses import replace

import pytest
from driver import full_text

import attention_core as ac
from app.figures.lines.curve import Curve, doublings
from app.figures.lines.curves import curves
from attention_core.experiments.error import MEASURES, SEEDS, UNIFORM, ErrorPoint, ErrorRow
from attention_core.inputs.source import SyntheticSource, TextSource
from attention_core.inputs.synthetic import SyntheticSpec
from attention_core.limits import current
from pages.error import (
    budget,
    budget_words,
    cost,
    cost_words,
    length,
    length_words,
    reading_guide,
    reasons,
    sweep,
    words,
)
from pages.error.options import ErrorOptions, Question


def make_question(*keys, heads=1, causal=False, **options):
    return Question(
        source=SyntheticSource(SyntheticSpec(n=64)),
        n=64,
        d=8,
        head=None,
        heads=heads,
        causal=causal,
        attentions=[ac.get(key) for key in keys],
        options=ErrorOptions(**options),
    )


def point(middle, variant="local", word="local~window~4", reference="softmax", **more):
    usual = {"setting": "window", "value": 4, "n": 64, "multiply_adds": 9, "floor": None, "floor_kind": ""}
    usual |= {"low": middle, "high": middle, "mass": 0.5, "negative_mass": 0.0}
    return ErrorPoint(variant=variant, word=word, reference=reference, middle=middle, **usual | more)


def uniform_point(middle, reference="softmax", **more):
    return point(middle, UNIFORM, UNIFORM, reference, setting=None, value=None, **more)


def test_variants_are_ranked_only_among_those_with_the_same_reference():
    """Check two references: Reformer's error is smaller than Local's, but the two errors are not comparable."""
    question = make_question("reformer", "local")
    near = [point(0.1, "reformer", "reformer", "reformer"), uniform_point(0.7, "reformer")]
    far = [point(0.5), uniform_point(0.9)]
    [one], [other] = cost_words.cost_findings(question, near + far)
    assert one.text == closest("", "50%", "90%")
    assert other.text == closest(" to shared-QK softmax", "10%", "70%").replace(FOUR, "Reformer with 2 rounds")
    assert "Reformer" not in full_text(cost_words.cost_findings(question, far))
    assert "Local" not in full_text(cost_words.cost_findings(question, near))


FOUR = "Local with window 4"
HALF = "At half of softmax's cost or less"


def closest(reference, error, equal):
    found = f"{error} matrix error. Equal weights have {equal}"
    closest = f"comes closest{reference}" if reference else "has the smallest error"
    return f"**{HALF}, {FOUR} {closest} of the settings shown: {found}.**"


@pytest.mark.parametrize(
    ("reference", "name", "middle", "finding"),
    [
        ("softmax", "softmax", 0.4, closest("", "40%", "80%")),
        ("softmax", "softmax", 0.719, closest("", "72%", "80%")),
        (
            "softmax",
            "softmax",
            0.799,
            f"**{HALF}, {FOUR} comes closest to softmax of the settings shown: 80% matrix error, hardly less than "
            "equal weights (80%).**",
        ),
        (
            "softmax",
            "softmax",
            0.8,
            f"**{HALF}, no setting shown is closer to softmax than equal weights.** The best is {FOUR}: 80% "
            "matrix error.",
        ),
        ("reformer", "shared-QK softmax", 0.4, closest(" to shared-QK softmax", "40%", "80%")),
        ("reformer", "shared-QK softmax", 0.719, closest(" to shared-QK softmax", "72%", "80%")),
        (
            "reformer",
            "shared-QK softmax",
            0.8,
            f"**{HALF}, no setting shown is closer to shared-QK softmax than equal weights.** The best "
            f"is {FOUR}: 80% matrix error.",
        ),
    ],
)
def test_the_best_variant_is_compared_with_the_mean_of_the_values(reference, name, middle, finding):
    how = {"baseline": 0.8, "question": make_question("local"), "reference": reference, "cost": "multiply-adds"}
    assert full_text(cost_words.verdict(point(middle, reference=reference), is_cheap=True, **how)) == finding
    assert full_text(cost_words.verdict(None, is_cheap=False, **how)) == (
        f"**Every variant that is compared with {name} here needs more than half of softmax's multiply-adds.**"
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (None, f"**{HALF}, no setting shown has a finite error.**"),
        (
            {"softmax": 10.0, "local~window~4": 5.0},
            "**At half of softmax's time or less, no setting shown has a finite error.**",
        ),
        (
            {"softmax": 10.0, "local~window~4": 5.1},
            "**Every variant that is compared with softmax here needs more than half of softmax's measured time.**",
        ),
    ],
)
def test_cheap_settings_with_an_infinite_error_are_not_called_expensive(times, expected):
    question = make_question("local", measure="kl")
    points = [point(math.inf), uniform_point(math.inf)]
    assert full_text(cost_words.cost_findings(question, points, times)) == expected


def test_an_infinite_divergence_of_equal_weights_is_explained_over_the_budget():
    question, points = make_question("local", measure="kl"), [point(0.5), uniform_point(math.inf)]
    assert full_text(budget_words.budget_findings(question, points)) == (
        "Equal weights have an infinite KL divergence, because some weights of softmax are 0 after rounding."
    )
    assert full_text(budget_words.budget_findings(question, points[:1])) == "", "equal weights are not computed yet"
    assert full_text(budget_words.budget_findings(make_question("local"), points)) == "", (
        "another metric has another cause"
    )


EQUAL = "Equal weights already equal softmax here, so no variant can be closer."
NO_ERROR = (
    "On this input, even equal weights have no error compared with softmax. The errors therefore cannot show which "
    "variant is better."
)


@pytest.mark.parametrize(
    ("measure", "baseline", "mass", "expected"),
    [
        ("output", 1e-6, 1e-6, EQUAL),
        ("output", 1e-6, 2e-6, NO_ERROR),
        ("output", 2e-6, 1e-6, ""),
        ("kl", 1e-12, 1e-8, EQUAL),
        ("kl", 2e-12, 1e-6, ""),
        ("turn", 2e-12, 1e-6, ""),
        ("missed", 0.0, 0.3, NO_ERROR),
    ],
)
def test_an_error_of_equal_weights_that_is_only_rounding_counts_as_none(measure, baseline, mass, expected):
    question = make_question("local", measure=measure)
    points = [point(0.5), uniform_point(baseline, mass=mass)]
    for describe in (cost_words.cost_findings, budget_words.budget_findings, length_words.length_findings):
        text = full_text(describe(question, points))
        assert text.startswith(expected) if expected else EQUAL not in text and NO_ERROR not in text
        assert not expected or "Local" not in text
    nystrom = [
        point(error, "nystrom", f"nystrom~landmarks~{m}", value=m, negative_mass=share)
        for m, error, share in ((8, baseline / 4, 0.0), (16, baseline / 2, 0.3))
    ]
    near = point(0.95 * baseline, word="local", value=16)
    question = make_question("local", "nystrom", measure=measure)
    assert bool(reasons.reasons(question, [*points, near, *nystrom])) == (not expected)
    assert bool(reasons.worst_step(question, [replace(p, middle=2 * p.middle) for p in nystrom])) == (not expected)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("matrix", "(100% = error as large as the matrix)"),
        ("mass", "(100% = all weight on other keys)"),
        ("kl", "(0 = the same weights)"),
        ("missed", "(100% = no top key in common)"),
        ("output", "(100% = error as large as the output)"),
        ("turn", "(0 = same direction, 1 = right angle)"),
    ],
)
def test_the_scale_of_the_metric_is_explained(measure, expected):
    assert words.metric_scale(make_question("local", measure=measure)) == expected


@pytest.mark.parametrize(
    ("spent", "middle", "named"),
    [(32768, 0.1, False), (32769, 0.1, True), (36044, 0.1, True), (36045, 0.1, False), (32769, 0.3004, False)],
)
def test_a_better_variant_slightly_above_half_of_softmaxs_cost_is_named(spent, middle, named):
    points = [point(0.3), point(middle, word="local~window~8", multiply_adds=spent), uniform_point(0.5)]
    share = "" if spent == 32769 else " (55%)"
    text = full_text(cost_words.cost_findings(make_question("local"), points))
    more = (
        " **Local with window 8 has less error (10%)**, but needs slightly more than half of softmax's multiply-adds"
        f"{share}."
    )
    assert ("has less error" in text) == (more in text) == named
    assert full_text(cost_words.cost_findings(make_question("local"), points[1:])).count("window 8") == (
        2 if spent == 32768 else 0
    )


def test_equal_weights_are_named_once_their_error_is_computed():
    question, points = make_question("local", against="length"), [point(0.4), uniform_point(0.5)]
    assert "At 64 tokens, equal weights on all keys have 50% matrix error." in full_text(
        length_words.length_findings(question, points)
    )
    assert "qual weights" not in full_text(length_words.length_findings(question, points[:1]))
    assert "equal weights on all keys up to the query have" in full_text(
        length_words.length_findings(replace(question, causal=True), points)
    )


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("matrix", "25% matrix error"),
        ("mass", "25% misplaced weight"),
        ("kl", "a KL divergence of 0.25 nats"),
        ("missed", "25% of the top 10 keys missing"),
        ("output", "25% output error"),
        ("turn", "a direction error of 0.25"),
    ],
)
def test_errors_are_percentages_if_they_are_shares(measure, expected):
    question = make_question("local", measure=measure)
    assert words.error_text(question, 0.25) == expected
    assert ("%" in expected) == question.options.is_share


BUDGETS = [
    point(0.6, multiply_adds=4, word="local~window~4"),
    point(0.4, multiply_adds=8, word="local~window~8"),
    point(0.1, multiply_adds=16, word="local~window~16"),
]


ZERO = "Equal weights have 80% matrix error."
NOT_CLOSE = f"**No setting shown that is cheaper than softmax halves the error of equal weights.** {ZERO}"
HALVES = "is the cheapest setting shown that at least halves the error of equal weights"


def test_the_view_by_setting_links_to_the_point_that_its_sentence_names():
    question, close = make_question("local"), [*BUDGETS, uniform_point(0.8)]
    far = [replace(p, middle=p.middle + 0.45) for p in close[:-1]] + close[-1:]
    exact = point(0.0, word="local~window~64", multiply_adds=65536)
    for points, word, name in ((close, "local~window~8", "window 8"), (far, "local~window~16", "window 16")):
        best = budget_words.linked_point(question, [exact, *points])
        assert best is not None
        assert best.word == word
        assert name in full_text(budget_words.budget_findings(question, [exact, *points]))
    assert budget_words.linked_point(question, [exact, close[-1]]) is None
    assert budget_words.linked_point(question, [*BUDGETS, uniform_point(0.0)]) is None, "equal weights have no error"
    infinite = [*BUDGETS, uniform_point(math.inf)]
    assert budget_words.linked_point(make_question("local", measure="kl"), infinite) is None
    other = [point(0.1, reference="reformer"), uniform_point(0.8, "reformer")]
    assert budget_words.linked_point(question, other) is None
    assert budget_words.linked_point(question, BUDGETS) == BUDGETS[-1], "equal weights are not computed yet"


def test_the_cheapest_setting_with_half_the_error_is_listed_over_budget():
    question = make_question("local", "linear", "topk")
    points = [*BUDGETS, uniform_point(0.8), point(0.5, "linear", "linear"), point(0.41, "topk", "topk~k~4")]
    reached = f"**Local with window 8 {HALVES}. It has 40% matrix error at 0.012% of softmax's multiply-adds.** {ZERO}"
    missed = "do not halve it at any setting cheaper than softmax."
    assert full_text(budget_words.budget_findings(question, points)) == (f"{reached} Linear and Top-k {missed}")
    assert full_text(budget_words.budget_findings(question, points[:5])) == (
        f"{reached} Linear {missed.replace('do', 'does', 1)}"
    )
    assert full_text(budget_words.budget_findings(question, [*BUDGETS, uniform_point(0.8)])) == reached
    assert full_text(budget_words.budget_findings(question, [*points[:5], point(0.39, "topk", "topk~k~4")])) == (
        f"{reached} Top-k also at least halves this error. Linear {missed.replace('do', 'does', 1)}"
    )
    both = [*points[:4], point(0.2, "linear", "linear"), point(0.39, "topk", "topk~k~4", multiply_adds=7)]
    assert full_text(budget_words.budget_findings(question, both)) == (
        f"**Top-k with k = 4 {HALVES}. It has 39% matrix error at 0.011% of softmax's multiply-adds.** {ZERO} "
        "Local and Linear also at least halve this error."
    )
    assert full_text(budget_words.budget_findings(question, [BUDGETS[0], uniform_point(0.8)])) == (
        f"{NOT_CLOSE} The best setting cheaper than softmax is Local with window 4: 60% matrix error."
    )
    assert full_text(budget_words.budget_findings(question, [BUDGETS[0], uniform_point(0.0)])) == NO_ERROR
    assert full_text(budget_words.budget_findings(question, [BUDGETS[0], uniform_point(2e-6)])).startswith(
        NOT_CLOSE.partition("** ")[0]
    )
    expensive = [replace(BUDGETS[1], multiply_adds=65536), uniform_point(0.8)]
    assert full_text(budget_words.budget_findings(question, expensive)) == NOT_CLOSE
    other = [point(0.6, reference="reformer"), uniform_point(0.8, "reformer")]
    assert full_text(budget_words.budget_findings(question, other)).startswith(
        "**Compared with shared-QK softmax, no setting shown that is cheaper than softmax halves the error of equal "
        f"weights.** {ZERO} The best setting cheaper than softmax is"
    )
    other[0] = replace(other[0], middle=0.3)
    assert full_text(budget_words.budget_findings(question, other)).startswith(
        f"**Compared with shared-QK softmax, Local with window 4 {HALVES}. It has "
    )
    top_k = [BUDGETS[0], point(0.1, "topk", "topk~k~4", multiply_adds=65536), uniform_point(0.8)]
    why = "Top-k does not count, because it computes all logits and costs at least as much as softmax here."
    assert full_text(budget_words.budget_findings(question, top_k)).endswith(f": 60% matrix error. {why}")
    top_k[1] = replace(top_k[1], middle=0.7, multiply_adds=65535)
    assert full_text(budget_words.budget_findings(question, top_k)).endswith(": 60% matrix error.")
    expensive[0] = replace(expensive[0], multiply_adds=65535)
    assert full_text(budget_words.budget_findings(question, expensive)).startswith(
        f"**Local with window 8 {HALVES} (40% matrix error), but it saves only 0.0015% of softmax's multiply-adds.**"
    )
    expensive[0] = replace(expensive[0], multiply_adds=32768)
    assert f"{HALVES}. It has 40% matrix error at 50% of softmax's" in full_text(
        budget_words.budget_findings(question, expensive)
    )
    assert full_text(budget_words.budget_findings(question, BUDGETS)) == ""  # The mean has not been computed yet.


@pytest.mark.parametrize(
    ("first", "trend"),
    [
        (0.25, "From 8 to 64 tokens, the error of Local with window 4 rises from 25% to 50%."),
        (0.75, "From 8 to 64 tokens, the error of Local with window 4 falls from 75% to 50%."),
        (0.5001, "At 8 and at 64 tokens, the error of Local with window 4 is 50%."),
    ],
)
def test_the_best_variant_at_the_greatest_length_has_a_trend(first, trend):
    question = make_question("local", "linear")
    points = [
        point(first, n=8),
        uniform_point(0.6, n=8),
        point(0.5),
        point(0.6, "linear", "linear"),
        uniform_point(0.7),
    ]
    text = full_text(length_words.length_findings(question, points))
    assert text == (
        f"**At 64 tokens, Local with window 4 is closest to softmax, with 50% matrix error.** At 64 tokens, equal "
        f"weights on all keys have 70% matrix error. {trend}"
    )
    assert full_text(length_words.length_findings(question, points[2:])) == text.replace(f" {trend}", "")
    assert full_text(length_words.length_findings(question, [*points[:4], uniform_point(0.5)])) == (
        f"**At 64 tokens, no variant shown is closer to softmax than equal weights.** The best, Local with window 4, "
        f"has 50% matrix error. At 64 tokens, equal weights on all keys have 50% matrix error. {trend}"
    )
    assert full_text(length_words.length_findings(question, [point(math.inf), uniform_point(0.5)])) == ""


@pytest.mark.parametrize(
    ("errors", "queries", "trend"),
    [
        ((0.25, 0.54, 0.5), 0, "From 8 to 64 tokens, the error of Local with window 4 rises from 25% to 50%."),
        (
            (0.25, 0.56, 0.5),
            0,
            "From 8 to 64 tokens, the error of Local with window 4 rises from 25% to 50%. In between, it is up to 56%, "
            "at n = 32.",
        ),
        (
            (0.5, 0.6, 0.5),
            0,
            "At 8 and at 64 tokens, the error of Local with window 4 is 50%. In between, it is up to 60%, at n = 32.",
        ),
        (
            (0.5, 0.6, 0.4),
            5,
            "From 8 to 64 keys, the error of Local with window 4 falls from 50% to 40%. In between, it is up to 60%, "
            "at n = 32.",
        ),
        ((0.0, 1e-6, 0.0), 0, "At 8 and at 64 tokens, the error of Local with window 4 is 0%."),
    ],
)
def test_the_trend_names_an_error_in_between_that_exceeds_both_ends(errors, queries, trend):
    question = replace(make_question("local"), queries=queries)
    group = [point(error, n=n) for error, n in zip(errors, (8, 32, 64), strict=True)]
    assert length_words.length_trend(question, group) == trend


@pytest.mark.parametrize(("spent", "end"), [(65535, ""), (65536, ", but it is not cheaper than softmax")])
def test_the_best_variant_at_the_greatest_length_may_not_be_cheaper(spent, end):
    points = [point(0.5, multiply_adds=spent), uniform_point(0.7)]
    text = full_text(length_words.length_findings(make_question("local"), points))
    assert text.startswith(
        f"**At 64 tokens, Local with window 4 is closest to softmax, with 50% matrix error{end}.** At"
    )


@pytest.mark.parametrize(
    ("least", "narrow", "ticks"),
    [
        (9, False, ["1%", "2%", "5%", "10%", "20%", "50%", "100%", "200%"]),
        (9, True, ["1%", "10%", "100%"]),
        (100, True, ["10%", "100%"]),
        (101, True, ["20%", "50%", "100%", "200%"]),
    ],
)
def test_a_narrow_axis_of_costs_has_fewer_ticks(least, narrow, ticks):
    line = Curve("A", [least, 500], [1.0, 0.5])
    found = sweep.cost_share_ticks([line], 1000.0, narrow=narrow)
    assert list(found.values()) == ticks
    assert found[1000.0] == "100%"


def test_the_closest_variant_cheaper_than_softmax_is_named_if_the_best_is_not_cheaper():
    points = [
        point(0.5, "topk", "topk~k~4", multiply_adds=65536),
        point(0.625, multiply_adds=65535),
        uniform_point(0.7),
    ]
    text, question = (
        " {name} is the closest variant that is cheaper than softmax, with ",
        make_question("topk", "local"),
    )
    found = full_text(length_words.length_findings(question, points))
    assert f"{text.format(name=FOUR)}62% matrix error. At 64 tokens, equal weights" in found
    for middle, is_far in ((0.7, True), (0.69, False)):
        points[1] = replace(points[1], middle=middle)
        found = full_text(length_words.length_findings(question, points))
        far = "No variant shown that is cheaper than softmax is closer to it than equal weights. At 64 tokens"
        assert (far in found) == is_far
        assert ("is the closest variant" in found) != is_far
    points[0] = replace(points[0], multiply_adds=65535)
    assert "cheaper" not in full_text(length_words.length_findings(question, points))


@pytest.mark.parametrize(
    ("queries", "n", "expected"), [(0, 64, "64 tokens"), (0, 1, "1 token"), (5, 64, "64 keys"), (5, 1, "1 key")]
)
def test_the_greatest_length_is_a_number_of_keys_in_cross_attention(queries, n, expected):
    question, points = replace(make_question("local"), queries=queries), [point(0.5, n=n), uniform_point(0.7, n=n)]
    assert full_text(length_words.length_findings(question, points)).startswith(
        f"**At {expected}, Local with window 4 is"
    )
    worse = [points[0], uniform_point(0.4, n=n)]
    assert full_text(length_words.length_findings(question, worse)).startswith(
        f"**At {expected}, no variant shown is closer"
    )


TIED = "Local with window 4 and Top-k with k = 4 are equally close to softmax, with 0% matrix error.**"


@pytest.mark.parametrize(
    ("other", "spent", "expected"),
    [
        (2e-6, 9, "Local with window 4 is closest to softmax, with 0% matrix error.** At"),
        (1e-6, 9, f"{TIED} At"),
        (0.0, 65536, f"{TIED} They are not cheaper than softmax. At"),
    ],
)
def test_variants_with_equal_errors_at_the_greatest_length_have_no_winner(other, spent, expected):
    points = [
        point(0.1, n=8),
        point(0.0, multiply_adds=spent),
        point(other, "topk", "topk~k~4", multiply_adds=65536),
        uniform_point(0.7),
    ]
    text = full_text(length_words.length_findings(make_question("local", "topk"), points))
    assert text.startswith(f"**At 64 tokens, {expected}")
    assert ("the error of Local with window 4 falls" in text) == ("closest" in expected)


@pytest.mark.parametrize(
    ("errors", "n", "named"),
    [
        ((0.04, 0.5), (4, 8), True),
        ((0.04, 0.05), (4, 8), False),
        ((0.05, 0.5), (4, 8), False),
        ((0.04, 0.5), (2, 4), False),
        ((0.04, 0.5), (5, 8), False),
        ((0.5, 0.04), (4, 8), False),
        ((0.04, 0.03), (4, 8), False),
    ],
)
def test_variants_that_are_almost_exact_up_to_their_setting_are_named(errors, n, named):
    points = [point(error, n=tokens) for error, tokens in zip(errors, n, strict=True)]
    points += [uniform_point(0.96, n=n[0]), uniform_point(1.0, n=n[1])]
    text = length_words.outgrown_settings(make_question("local"), points)
    assert text == named * (
        "Local with window 4 (up to 4 tokens) is almost exact, because its setting is at least as large as the text."
    )
    topk = [replace(p, variant="topk", word="topk~k~8", value=8) for p in points[:2]]
    topk += [replace(topk[-1], n=16), uniform_point(1.0, n=16)]
    topk = [replace(p, middle=0.0 if p.n <= 8 else 0.5) if p.variant == "topk" else p for p in topk]
    if named:
        assert length_words.outgrown_settings(make_question("local", "topk"), points + topk) == (
            "Top-k with k = 8 (up to 8 tokens) is exact, because its setting is at least as large as the text. Local "
            "with window 4 (up to 4 tokens) is almost exact, because its setting is at least as large as the text."
        )
    assert length_words.outgrown_settings(replace(make_question("local"), queries=8), points) == ""
    rounded = [replace(p, middle=1e-6 * p.middle) for p in points]
    assert length_words.outgrown_settings(make_question("local"), rounded) == "", "the errors are only rounding"


def test_the_linked_matrix_is_the_best_cheap_point_compared_with_softmax():
    near = point(0.1, "local", "local~window~9", multiply_adds=32769)
    cheap = [point(0.3), point(0.2, word="local~window~5", multiply_adds=32768)]
    other = point(0.0, "reformer", "reformer", "reformer")
    question = make_question("local", "reformer")
    assert cost_words.best_cheap_point(question, [near, *cheap, other, uniform_point(0.1)]) == cheap[1]
    assert cost_words.best_cheap_point(question, [near, other]) is None


@pytest.mark.parametrize(("against", "has_links"), [("cost", True), ("budget", True), ("length", False)])
def test_points_link_to_matrices_unless_lengths_differ(against, has_links):
    question = make_question("local", against=against)
    line = sweep.curve(question, question.attentions[0], [point(0.5), point(math.inf)], [4.0, 8.0], name="A")
    assert list(line.links) == (["local~window~4"] * 2 if has_links else [])
    assert all(note.endswith("<br>Click to open this matrix") == has_links for note in line.notes)


@pytest.mark.parametrize(("causal", "spent", "cheap"), [(False, 32768, True), (False, 32769, False)])
def test_half_of_softmaxs_cost_is_included(causal, spent, cheap):
    assert ac.get("softmax").cost(64, 8).multiply_adds == 65536
    text = full_text(
        cost_words.cost_findings(
            make_question("local", causal=causal), [point(0.1, multiply_adds=spent), uniform_point(0.5)]
        )
    )
    assert ("Local with window 4 has the smallest error" in text) == cheap
    assert ("Every variant that is compared with softmax here needs more than half" in text) != cheap


@pytest.mark.parametrize(("error", "spent", "says_so"), [(0.5, 65535, True), (0.49, 65535, False), (0.5, 65536, False)])
def test_expensive_settings_that_are_worse_than_equal_weights_are_named(error, spent, says_so):
    question = make_question("local")
    text = full_text(cost_words.cost_findings(question, [point(error, multiply_adds=spent), uniform_point(0.5)]))
    assert (
        text.endswith(
            "Even below softmax's full cost, no setting shown is closer than equal weights. The best is Local with "
            "window 4: 50% matrix error."
        )
        == says_so
    )


@pytest.mark.parametrize(("ms", "cheap"), [(4.9, True), (5.1, False)])
def test_the_cost_headline_uses_measured_times(ms, cheap):
    points = [
        point(0.0, "softmax", "softmax", setting=None, value=None),
        point(0.1, multiply_adds=10**9),
        uniform_point(0.5),
    ]
    question = make_question("local", against="cost", price="ms")
    text = full_text(cost_words.cost_findings(question, points, {"softmax": 10.0, "local~window~4": ms}))
    assert (
        "**At half of softmax's time or less, Local with window 4 has the smallest error of the settings shown: 10% "
        "matrix error. " in text
    ) == cheap
    assert (
        "Every variant that is compared with softmax here needs more than half of softmax's measured time" in text
    ) != cheap
    assert full_text(cost_words.cost_findings(question, points, {})).startswith("**Press “Measure times”** to time")


@pytest.mark.parametrize(("log", "error", "named"), [(True, 0.0, True), (True, 1e-9, False), (False, 0.0, False)])
def test_a_logarithmic_axis_names_the_variants_that_it_cannot_show(log, error, named):
    points = [point(0.5), point(error, "softmax", "softmax", setting=None, value=None), uniform_point(0.5)]
    text = " ".join(reading_guide.notes(make_question("local", log=log), points))
    assert ("These variants have an error of 0, which a log scale cannot show: Softmax." in text) == named


def test_only_softmax_with_changed_settings_is_compared():
    plain = point(0.0, "softmax", "softmax", setting=None, value=None)
    for describe in (cost_words.cost_findings, budget_words.budget_findings, length_words.length_findings):
        assert full_text(describe(make_question("softmax"), [plain])) == "Add a variant to compare it with softmax."
        assert full_text(describe(make_question("softmax", "local"), [plain])) == ""  # Its result has not arrived yet.
    warm = ac.get("softmax", temperature=2.0)
    question = make_question()
    object.__setattr__(question, "attentions", [warm])
    text = full_text(cost_words.cost_findings(question, [point(0.2, "softmax", warm.word), uniform_point(0.5)]))
    assert (
        "Softmax with temperature 2.0 has the smallest error of the settings shown: 20% matrix error. Equal weights "
        in text
    )


def test_only_variants_without_a_target_are_replacements():
    keys = ("softmax", "linear", "local", "performer", "reformer")
    assert [key for key in keys if words.is_replacement(ac.get(key))] == ["linear"]


def notes_of(*points, heads=1, keys=("local",)):
    return reading_guide.notes(make_question(*keys, heads=heads), points)


def test_a_plain_chart_has_no_notes():
    assert notes_of(point(0.1)) == []


def test_marks_in_the_chart_are_explained():
    line, large = Curve("a", [1], [0.2]), "Large points: the settings in the buttons above."
    for drawn, texts in (
        ([replace(line, large_index=0)], [large]),
        ([line, replace(line, star_index=0, large_index=0)], [large]),
        ([line], []),
    ):
        assert [*filter(None, reading_guide.explain_marks(drawn, 1.0, None))] == texts


@pytest.mark.parametrize(
    ("against", "word", "error", "landmarks", "explained"),
    [
        ("budget", "nystrom", 0.1, 64, True),
        ("length", "nystrom", 0.1, 64, True),
        ("cost", "nystrom", 0.1, 64, False),
        ("budget", "nystrom~inverse~exact", 0.1, 64, False),
        ("budget", "nystrom", 1e-7, 64, False),
        ("budget", "nystrom", 0.1, 32, False),
    ],
)
def test_the_error_with_one_landmark_per_token_is_explained_by_the_inverse(against, word, error, landmarks, explained):
    points = [point(error, "nystrom", word, value=landmarks), uniform_point(0.9)]
    assert reasons.reasons(make_question("nystrom", against=against), points) == explained * [
        "With one landmark per token (64), Nyström has 10% matrix error, because its iterative inverse is approximate. "
        "With the exact inverse, it would equal softmax."
    ]
    crossing = replace(make_question("nystrom", against=against), queries=8)
    assert reasons.reasons(crossing, points) == []


def test_notes_on_variants_precede_notes_on_points():
    linear, reformer = point(0.1, "linear", "linear"), point(math.inf, "reformer", "reformer", "reformer")
    text = notes_of(linear, reformer, keys=("linear", "reformer"))
    assert text[0] == f"Reformer: {ac.get('reformer').variant.note}"
    assert text[1].startswith("1 point is not drawn because its error is infinite.")


@pytest.mark.parametrize(("n", "begins"), [(1, "1 point is not drawn"), (2, "2 points are not drawn")])
def test_infinite_points_are_counted_without_equal_weights(n, begins):
    [text] = notes_of(*[point(math.inf)] * n, uniform_point(math.inf))
    assert text.startswith(begins)


@pytest.mark.parametrize(
    ("y_end", "x_end", "are_drawn"),
    [(1.0, None, True), (3.0, None, False), (3.0, 3, False), (math.inf, None, False), (3.0, 2.5, True)],
)
def test_arrows_at_the_ends_of_the_axes_are_explained(y_end, x_end, are_drawn):
    drawn = [Curve("A", [1, 2, 3], [0.5, 2.25, None]), Curve("B", [1], [1.5])]
    texts = [*filter(None, reading_guide.explain_marks(drawn, y_end, x_end))]
    arrows = ["Arrows: lines that continue outside the chart.", "Double-click the chart to show all points."]
    assert texts == arrows * are_drawn


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"against": "cost"}, True), ({"against": "cost", "price": "ms"}, False), ({"against": "budget"}, False)],
)
def test_the_counted_operations_are_explained_if_the_cost_is_a_count(options, expected):
    assert bool(reading_guide.notes(make_question("local", **options), [point(0.1)])) == expected


@pytest.mark.parametrize(
    ("heads", "begins"),
    [
        (
            1,
            f"For random variants, lines show the median error over {SEEDS} seeds, and bands show the middle half of "
            "the errors.",
        ),
        (2, "Lines show the median error over 2 heads, and bands show the middle half of the errors. Random variants"),
    ],
)
def test_bands_are_explained_if_there_is_one(heads, begins):
    [text] = notes_of(point(0.2, low=0.1), heads=heads)
    assert text.startswith(begins)
    assert notes_of(point(0.2), heads=heads) == []


@pytest.mark.parametrize(
    ("measure", "floor", "expected"),
    [("matrix", 0.1, True), ("matrix", 0.0, False), ("matrix", None, False), ("output", 0.1, False)],
)
def test_lower_bounds_are_explained_if_one_is_above_zero(measure, floor, expected):
    text = budget.key(make_question("local", measure=measure), [point(0.2, floor=floor)])
    assert ("Dashed: the lowest error possible with the same rank or number of keys." in text) == expected


@pytest.mark.parametrize(("spent", "is_open"), [(65535, False), (65536, True)])
def test_settings_that_cost_as_much_as_softmax_have_open_points(spent, is_open):
    question, points = make_question("local"), [point(0.2, multiply_adds=spent)]
    [line] = budget.lines(question, points)
    assert list(line.open_indices) == [0] * is_open
    text = "Open points cost at least as much as softmax."
    assert (text in budget.key(question, points)) == is_open
    figure = curves([line], x_title="", y_title="")
    assert (figure["data"][0]["marker"]["symbol"] == ["circle-open"]) == is_open


@pytest.mark.parametrize(("floor", "is_drawn"), [(0.004, False), (0.006, True)])
def test_a_floor_on_the_axis_is_not_drawn(floor, is_drawn):
    points = [point(0.2, floor=floor, value=4), point(0.1, floor=0.0, value=8)]
    names = [line.name for line in budget.lines(make_question("local"), points)]
    assert ("Local · window: lower bound" in names) == is_drawn


def test_lower_bounds_use_the_budget_axis_and_the_matrix_error():
    points = [point(0.2, floor=0.1, value=4), point(0.1, floor=0.05, value=8)]
    own, floor = budget.lines(make_question("local"), points)
    assert (floor.name, floor.group, floor.x, floor.y) == ("Local · window: lower bound", own.name, own.x, [0.1, 0.05])
    assert len(budget.lines(make_question("local", measure="output"), points)) == 1


@pytest.mark.parametrize(("expensive", "arrow"), [(5, True), (4, False), (3, False)])
def test_budgets_that_get_cheaper_have_an_arrow(expensive, arrow):
    points = [
        point(0.2, "pooled", "pooled~stride~1", setting="stride", value=1, multiply_adds=expensive),
        point(0.3, "pooled", "pooled~stride~2", setting="stride", value=2, multiply_adds=4),
    ]
    question = make_question("pooled")
    assert ("↓: cheaper at larger values." in budget.key(question, points)) == arrow
    assert (budget.lines(question, points)[0].name == "Pooled keys · stride ↓") == arrow


def test_budgets_that_first_get_more_expensive_have_no_arrow():
    points = [
        point(0.3, "lolcats", f"lolcats~window~{window}", setting="window", value=window, multiply_adds=cost)
        for window, cost in ((1, 9), (8, 10), (56, 2))
    ]
    assert not budget.gets_cheaper(points)
    assert budget.gets_cheaper([points[0], points[2]])


def test_variants_without_a_budget_have_flat_lines_and_a_note():
    points = [point(0.4, "linear", "linear", setting=None, value=None), point(0.2, value=4), point(0.1, value=16)]
    question = make_question("linear", "local")
    assert budget.notes(question, points) == ["These variants have no budget setting, so their lines are flat: Linear."]
    level, local = budget.lines(question, points)
    assert (level.name, level.x, level.y) == ("Linear", [4, 16], [0.4, 0.4])
    assert (local.x, local.y) == ([4, 16], [0.2, 0.1])
    assert budget.notes(make_question("local"), points[1:]) == []


def test_a_budget_of_zero_is_left_out_and_named():
    points = [
        point(0.9, "blocks", "blocks~blocks~0", setting="blocks", value=0),
        point(0.2, "blocks", "blocks~blocks~4", setting="blocks", value=4),
    ]
    [line] = budget.lines(make_question("blocks"), points)
    assert (line.x, line.y) == ([4], [0.2])
    text = "This axis cannot show a budget of 0 (Block selection). The view “By cost” shows these points."
    assert budget.notes(make_question("blocks"), points) == [text]
    assert budget.notes(make_question("blocks"), points[1:]) == []


def test_a_fractional_budget_is_labelled_as_a_share_of_n():
    [line] = budget.lines(
        make_question("power_bert"), [point(0.2, "power_bert", "power_bert", setting="keep", value=0.5)]
    )
    assert (line.name, line.x) == ("PoWER-BERT · keep × n", [32])


def test_each_variant_is_one_line_over_length_with_its_settings():
    zero, line = length.lines(
        make_question("local"), [uniform_point(0.9, n=8), point(0.1, n=8), uniform_point(0.8), point(0.2)]
    )
    assert (zero.name, zero.x, zero.y) == ("Equal weights on all keys", [8, 64], [0.9, 0.8])
    assert (line.name, line.x, line.y) == ("Local · window 16", [8, 64], [0.1, 0.2])


def test_synthetic_lengths_reach_the_limit_and_text_lengths_the_text():
    assert length.lengths(SyntheticSource(SyntheticSpec(n=64)), 64)[-1] == current().matrix_tokens > 64
    assert length.lengths(TextSource("some words"), 20) == (8, 16, 20)


EIGHT = "window 8: lowest error<br>at up to half the cost"
LAST = EIGHT.replace("8", "64")


def test_the_points_that_sentences_name_have_labels():
    half = 65536 // 2
    window = [
        point(error, word=f"local~window~{w}", value=w, multiply_adds=count)
        for w, error, count in ((4, 0.7, 7), (8, 0.5, half), (12, 0.4, half + 1), (24, 0.3, 2 * half), (32, 0.2, 65536))
    ]
    landmarks = [
        point(error, "nystrom", f"nystrom~landmarks~{m}", value=m, multiply_adds=m, negative_mass=share)
        for m, error, share in ((1, 0.9, 0), (4, 0.7, 0), (8, 0.6, 0.1), (12, 0.8, 0.3), (24, 0.7, 0.3), (32, 0.6, 0))
    ]
    question = make_question("local", "nystrom")
    local, nystrom = cost.lines(question, [*window, *landmarks], None)
    assert local.texts == ["", EIGHT, "window 12", "", "window 32"], (
        "window 12 needs slightly more than half of the cost"
    )
    assert nystrom.texts == ["", "", "landmarks 8", "landmarks 12", "", "landmarks 32"], (
        "the step to more negative weights"
    )


@pytest.mark.parametrize(
    ("error", "spent", "labelled"),
    [(0.16, 65536, False), (0.17, 65536, True), (0.01, 58000, True), (0.01, 72000, False)],
)
def test_the_last_setting_has_no_label_next_to_the_label_of_softmax(error, spent, labelled):
    """Check an error and a cost on either side of a tenth of the axis, which ends at 2.1 times 0.8, and of the cost."""
    points = [
        point(0.7, word="local~window~4", value=4, multiply_adds=7),
        point(error, word="local~window~32", value=32, multiply_adds=spent),
        uniform_point(0.8),
    ]
    question = replace(make_question("softmax", "local"), attentions=(ac.get("softmax"), ac.get("local", window=4)))
    local = next(line for line in cost.lines(question, points, None) if line.name == "Local")
    assert ("32" in "".join(local.texts)) == labelled


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        (("local", "linear", "nystrom"), "window of Local or landmarks of Nyström"),
        (("softmax", "local"), "window of Local"),
        (("local", "nystrom", "topk"), "value of each line's setting"),
        (("linear",), "value of each line's setting"),
    ],
)
def test_the_axis_of_settings_names_up_to_two_settings(keys, title):
    assert budget.VIEW.horizontal_title(make_question(*keys)) == title
    costs = "Equal settings of different variants do not cost the same."
    points = [point(0.3, key, key) for key in keys]
    assert (costs in budget.key(make_question(*keys), points)) == (len({*keys} - {"softmax", "linear"}) > 1)


def test_lines_over_counted_or_measured_cost():
    points = [
        uniform_point(0.9, multiply_adds=2),
        point(0.5, multiply_adds=7),
        point(0.4, word="local~window~8", value=8),
    ]
    question = make_question("softmax", "local")
    zero, line = cost.lines(question, points, None)
    assert (zero.x, zero.y, line.x) == ([7, 2 * 65536], [0.9, 0.9], [7, 9])
    assert (zero.label, zero.name_index) == ("↑ worse than equal weights", 1)
    assert cost.lines(question, points[:1], None)[0].x == [2, 2 * 65536], "no variant is computed yet"
    assert (zero.name, line.name, line.label) == ("Equal weights on all keys", "Local", "Local · window 4")
    assert (line.texts, line.name_index, line.large_index) == (
        ["", "window 8: lowest error<br>at up to half the cost"],
        0,
        None,
    )
    worse = point(0.6, word="local~window~9", value=9, multiply_adds=11)
    exact = point(0.0, word="local~window~64", value=64, multiply_adds=20)
    assert cost.lines(question, [*points, worse, exact], None)[-1].texts == ["", "", "window 9", ""], (
        "softmax has a label"
    )
    between = [replace(worse, value=10 + i, word=f"local~window~{10 + i}") for i in range(7)]
    [*_others, line] = cost.lines(question, [*points, worse, *between, exact], None)
    assert line.texts == [*[""] * 9, "window 16", ""], "the points between the ends have no label"
    [*_others, line] = cost.lines(question, [*points, worse, *between, replace(exact, middle=0.1)], None)
    assert (line.texts, line.large_index, line.star_index) == ([*[""] * 9, "window 16", LAST], 9, 10)
    expensive = replace(exact, middle=0.1, multiply_adds=10**9)
    assert cost.lines(question, [*points, worse, expensive], None)[-1].texts == ["", EIGHT, "window 9", ""]
    first = cost.lines(question, [*points[:2], worse], None)[-1]
    assert (first.label, first.texts) == ("Local · window 4: lowest error<br>at up to half the cost", ["", "window 9"])
    as_good = [replace(points[0], middle=0.4), *points[1:]]
    assert cost.lines(question, as_good, None)[-1].texts == ["", "window 8"], "equal weights are as close"
    many = make_question("softmax", "local", "atrous", "nystrom", "topk")
    [*_others, line] = cost.lines(many, [*points, worse, exact], None)
    assert (line.texts, line.label, line.name_index) == (["window 4", "8", "", ""], "Local · window", None)
    selected = point(0.45, word="local~window~16", value=16, multiply_adds=10)
    high = point(3.0, word="local~window~1", value=1, multiply_adds=1)
    [*_others, line] = cost.lines(question, [*points, high, selected], None)
    assert (line.name_index, line.label, line.large_index) == (1, "Local · window 4", 3), (
        "the first point is above the axis"
    )
    assert cost.labels_all_points(make_question("softmax", "linear", "local", "atrous", "nystrom"))
    assert not cost.labels_all_points(many)
    plain = point(0.0, "softmax", "softmax", setting=None, value=None, multiply_adds=20)
    assert [(c.name, c.x, c.y) for c in cost.lines(question, [plain], None)] == [("Softmax", [20], [0.0])]
    symbols = [[c.symbol for c in cost.lines(each, [points[0], plain], None)] for each in (question, many)]
    assert symbols == [["", "circle"], ["", ""]], "among many lines, softmax has its name at the axis end"
    zero, line = cost.lines(question, points, {UNIFORM: 3.0, "local~window~8": 1.0})
    assert (line.texts, line.label) == ([""], "Local · window 8")
    assert (zero.x, line.x) == ([1, 6], [1])


def test_the_pareto_front_includes_only_points_compared_with_softmax():
    points = [point(0.1, "reformer", "reformer", "reformer", multiply_adds=1), point(0.5)]
    reformer, local = cost.lines(make_question("reformer", "local", "atrous", "nystrom"), points, None)
    assert (list(reformer.texts), local.texts) == ([""], ["window 4: lowest error<br>at up to half the cost"])


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "window 4<br>error 50%<br>64 tokens · 9 multiply-adds"),
        ({"low": 0.4}, "window 4<br>error 50% (40% to 50%)<br>64 tokens · 9 multiply-adds"),
        ({"setting": None}, "error 50%<br>64 tokens · 9 multiply-adds"),
        ({"reference": "reformer", "setting": None}, "error 50%, compared with shared-QK softmax<br>64 tokens"),
        ({"floor": 0.25, "floor_kind": "rank"}, "<br>lower bound 25%: error of the best matrix of the same rank<br>"),
        (
            {"floor": 0.25, "floor_kind": "keys"},
            "<br>lower bound 25%: error of the best matrix with the same number of keys per row<br>",
        ),
        ({"floor": 0.0, "floor_kind": ""}, "error 50%<br>64 tokens"),
        ({"multiply_adds": 12345}, "12,345 multiply-adds"),
    ],
)
def test_tooltip_lists_the_numbers_of_a_point(more, expected):
    text = sweep.tooltip(make_question(), point(0.5, **more))
    assert expected in text
    assert ("lower bound" in text) == ("lower bound" in expected)


def test_replacements_have_dash_dotted_lines():
    question = make_question("linear", "local")
    for attention, other in zip(question.attentions, (True, False), strict=True):
        line = sweep.curve(question, attention, [point(0.5)], [4.0], name="A")
        assert (line.dash, line.hollow) == ("dashdot" if other else "solid", False)


def test_a_band_has_no_infinite_edge():
    question = make_question("local")
    points = [
        point(0.5, low=0.4, high=math.inf),
        point(0.5, low=0.4, high=0.6),
        point(math.inf, low=0.4, high=math.inf),
    ]
    line = sweep.curve(question, question.attentions[0], points, [1.0, 2.0, 3.0], name="A")
    assert line.low[:2] == [0.5, 0.4]
    assert line.high[:2] == [0.5, 0.6]
    assert line.y == [0.5, 0.5, None]
    assert sweep.curve(question, question.attentions[0], [point(0.5)], [1.0], name="A").low is None


@pytest.mark.parametrize(
    ("xs", "stops"),
    [([1, 24], [1, 2, 4, 8, 16, 24]), ([1, 20], [1, 2, 4, 8, 20]), ([3, 64], [3, 6, 12, 24, 48, 64]), ([5], [5])],
)
def test_the_axis_is_marked_at_doublings_and_at_its_end(xs, stops):
    question = make_question("local")
    assert doublings([sweep.curve(question, question.attentions[0], [point(1)] * len(xs), xs, name="A")]) == stops


@pytest.mark.parametrize("measure", ["output", "matrix"])
def test_windows_worse_than_the_mean_are_named_with_the_weight_that_they_hide(measure):
    narrow = point(0.9, word="local~window~1", value=1, mass=0.869)
    wider = point(0.81, word="local~window~2", value=2, mass=0.559)
    points = [point(0.8, word="local~window~4", mass=0.4), wider, narrow]
    expected = (
        "**With windows 1 and 2, Local has a larger error than equal weights.** The windows hide 56% to 87% of "
        "softmax's weight."
    )
    for axis, explained in (("cost", expected), ("budget", expected), ("length", "")):
        question = make_question("local", measure=measure, against=axis)
        assert reasons.reasons(question, [*points, uniform_point(0.8)]) == [explained] * bool(explained)
        with_finding = reasons.reasons(question, [*points, uniform_point(0.8)], "Cause.")
        assert with_finding == ["Cause.", *[explained] * bool(explained)]
        hardly = point(0.75, word="local", value=16)
        near = "Local with window 16 (75%) is not clearly better than equal weights (80%)."
        texts = ["Cause.", near, expected] if explained else ["Cause."]
        assert reasons.reasons(question, [*points, hardly, uniform_point(0.8)], "Cause.") == texts
    [alone] = reasons.reasons(make_question("local"), [narrow, uniform_point(0.8)])
    assert alone == (
        "**With window 1, Local has a larger error than equal weights.** The window hides 87% of softmax's weight."
    )
    assert reasons.reasons(make_question("local"), [points[0], uniform_point(0.8)]) == []
    assert reasons.reasons(make_question("local"), points) == [], "the baseline is not computed yet"


@pytest.mark.parametrize(
    ("window", "linear", "expected"),
    [
        (0.7199, 0.8, ""),
        (0.7201, 0.8, "Local with window 16 (72%) is not clearly better than equal weights (80%)."),
        (0.7201, 0.799, "Local with window 16 (72%) and Linear (80%) are not clearly better than equal weights (80%)."),
    ],
)
def test_variants_hardly_better_than_equal_weights_at_their_current_settings_are_named(window, linear, expected):
    points = [
        point(0.75),  # not the current setting
        point(window, word="local", value=16),
        point(linear, "linear", "linear"),
    ]
    question = make_question("local", "linear")
    assert reasons.near_equal_weights(question, [*points, uniform_point(0.8)]) == expected
    assert reasons.near_equal_weights(question, points) == "", "the baseline is not computed yet"


@pytest.mark.parametrize(("linear", "named"), [(0.71, False), (0.73, True), (0.8, False)])
def test_over_the_length_the_longest_text_decides_which_variants_are_hardly_better_than_equal_weights(linear, named):
    question = make_question("local", "linear", against="length")
    points = [point(0.2), point(linear, "linear", "linear"), uniform_point(0.8)]
    points += [point(0.79, "linear", "linear", n=8), uniform_point(0.8, n=8)]
    text = f"Linear ({100 * linear:.0f}%) is not clearly better than equal weights (80%)."
    assert (text in full_text(length_words.length_findings(question, points))) == named


@pytest.mark.parametrize(("word", "measure"), [("local~window~4", "mass"), ("relu2", "output")])
def test_the_cause_of_an_error(word, measure):
    key = word.partition("~")[0]
    assert reasons.cause(make_question(key, measure=measure), point(0.3, key, word)) == ""
    assert reasons.cause(make_question("local", measure="output"), point(0.3)) == (
        "Local with window 4 hides the pairs that hold 50% of softmax's weight."
    )
    assert reasons.cause(make_question("topk", measure="output"), point(0.3, "topk", "topk~k~4")) == (
        "Compared with softmax, Top-k with k = 4 moves 50% of a query's weight to other keys."
    )
    small = point(0.3, "topk", "topk~k~4", mass=0.000023)
    assert "moves 0.0023% of a" in reasons.cause(make_question("topk", measure="output"), small)


@pytest.mark.parametrize(
    ("error", "negative", "explained"), [(0.76, 0.25, True), (0.76, 0.11, False), (0.674, 0.25, False)]
)
def test_more_landmarks_raise_the_error_by_negative_weights(error, negative, explained):
    few, some, many = (
        point(e, "nystrom", f"nystrom~landmarks~{m}", value=m, negative_mass=share)
        for e, m, share in ((0.67, 8, 0.07), (error, 16, negative), (0.59, 32, 0.5))
    )
    text = reasons.reasons(make_question("nystrom"), [many, some, few, uniform_point(0.8)])
    assert text == explained * [
        "**Nyström is worse with 16 landmarks than with 8**: 25% of its weight (by absolute value) is negative, up "
        "from 7%."
    ]


def row(floor):
    return ErrorRow(
        **{"variant": "local", "setting": "window", "value": 4, "word": "local~window~4", "reference": "softmax"},
        **{"head": 0, "seed": None, "n": 8, "causal": False, "multiply_adds": 10, **dict.fromkeys(MEASURES, 0.5)},
        **{"size": 1.0, "negative_mass": 0.0},
        **{"floor": floor, "floor_kind": None if floor is None else "keys", "rank": None, "keys": floor},
    )


@pytest.mark.parametrize("floor", [None, 0.25])
@pytest.mark.parametrize("times", [None, {}, {"local~window~4": 1.5}])
def test_the_csv_has_lower_bounds_and_times_if_there_are_any(floor, times):
    [read] = csv.DictReader(io.StringIO(sweep.csv([row(floor)], times).decode("utf-8-sig")))
    assert (read["value"], read["seed"], read["multiply_adds"], read["matrix"]) == ("4", "", "10", "0.5")
    assert ("floor" in read, "rank" in read) == (floor is not None,) * 2
    assert read.get("milliseconds") == ("1.5" if times else None)


def test_the_axis_over_cost_ends_just_above_equal_weights():
    points = [uniform_point(0.8), point(2.0)]
    assert sweep.axis_end(make_question("local", against="cost"), points) == pytest.approx(1.0)
    assert sweep.axis_end(make_question("local", against="length"), points) == pytest.approx(1.68)


def test_the_view_by_setting_marks_the_named_and_the_current_setting():
    settings = ((4, 0.9), (8, 0.3), (16, 0.2), (32, 0.1))
    points = [point(e, word=f"local~window~{w}", value=w, multiply_adds=w) for w, e in settings]
    question = replace(make_question("local", against="budget"), attentions=[ac.get("local", window=16)])
    *_others, line = budget.lines(question, [uniform_point(0.8), *points])
    assert (line.large_index, line.star_index) == (2, 1)
    assert budget.key(question, [uniform_point(0.8), *points])[-1].startswith(
        "The star marks the cheapest setting with"
    )
    far = [uniform_point(0.1), *points]
    assert budget.key(question, far)[-1] == "", "no cheaper setting halves this error"
    assert budget.lines(question, far)[-1].star_index is None


@pytest.mark.parametrize(("key", "has_bound"), [("linear", False), ("local", True)])
def test_the_dashes_are_explained_only_if_a_lower_bound_is_drawn(key, has_bound):
    question, points = make_question(key, against="budget", measure="matrix"), [point(0.5, key, key, floor=0.3)]
    assert any("lower bound" in line.name for line in budget.lines(question, points)) == has_bound
    assert ("Dashed: " in " ".join(budget.key(question, points))) == has_bound


@pytest.mark.parametrize(
    ("spent", "times", "words"),
    [
        ((131072, 131073), None, ""),
        ((131073, 131073), None, "Local is outside the chart, because it costs more than twice as much as softmax."),
        ((9, 9), {"softmax": 1.0, "local~window~4": 2.1, "local~window~8": 2.0}, ""),
        (
            (9, 9),
            {"softmax": 1.0, "local~window~4": 2.1, "local~window~8": 2.1, "linear": 2.1},
            "Linear and Local are outside the chart, because they cost more than twice as much as softmax.",
        ),
    ],
)
def test_variants_beyond_the_axis_of_costs_are_named(spent, times, words):
    points = [point(0.5, multiply_adds=spent[0]), point(0.4, word="local~window~8", multiply_adds=spent[1])]
    points.append(point(0.5, "linear", "linear"))
    assert cost.undrawn_variants(make_question("linear", "local"), points, times) == words
