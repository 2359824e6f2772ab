"""Tests of the Matrices page's sentences, with numbers on either side of each threshold."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import attention_core as ac
from app.jobs.cached import MatrixView, matrix
from app.words.finding import text_above, text_below
from app.words.i18n import paragraph
from app.words.labels import sentence_name
from attention_core.analysis.matrix.head_scores import HeadScores
from attention_core.analysis.matrix.informative_query import KeyWeight
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec
from attention_core.metrics.passport import NEGATIVE_TOLERANCE
from pages.matrices import ranking as rankings
from pages.matrices.headline import findings, flatness, is_masked_softmax, lost_weight, negative_weights
from pages.matrices.numbers import rank_note
from pages.matrices.ranking import VariantError
from pages.matrices.words import (
    bars_title,
    caption,
    details,
    excluded_note,
    head_description,
    head_findings,
    joined_tokens,
    largest_changes,
    largest_weights,
    scope_note,
    sign_note,
    spread_sentence,
    top_head,
    variant_sentence,
)

SMALL = MatrixView(source=SyntheticSource(SyntheticSpec(n=16, heads=1, d=8)), head=0, causal=False, special=True)


def ranking(*args, **options):
    """Return the ranking with its explanation."""
    finding = rankings.ranking(*args, **options)
    return paragraph(finding.text, finding.explanation)


def headline(*args, **options):
    """Return the findings above the board and the text below it."""
    lines = findings(*args, **options)
    return paragraph(text_above(lines), text_below(lines))


def make_errors(zero=0.95, **errors):
    return [VariantError(name=name, error=error, baseline=zero) for name, error in errors.items()]


@pytest.mark.parametrize("order", [1, -1])
def test_the_variants_with_the_smallest_and_largest_error_are_named(order):
    given = make_errors(Near=0.12, Middle=0.4, Far=1.78)[::order]
    assert ranking("softmax", given) == (
        "**Near has the smallest output error compared with softmax (12%).** **Far has the largest output error "
        "compared with softmax (178%).** "
        "The output error of **Far** (178%) is larger than that of equal weights on all keys (95%)."
    )
    assert ranking("softmax", make_errors(zero=1.9, Near=0.12, Middle=0.4, Far=1.78)[::order]) == (
        "**Near has the smallest output error compared with softmax (12%).** "
        "**Far has the largest output error compared with softmax (178%).** Equal weights on all keys would have an "
        "output "
        "error of 190%."
    )


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_an_error_that_is_not_finite_is_named_and_not_ranked_in_any_order(broken):
    given = make_errors(Near=0.12, Far=1.78, Broken=broken, Also=math.nan)
    texts = {ranking("softmax", list(order)) for order in itertools.permutations(given)}
    assert texts == {
        "**Near has the smallest output error compared with softmax (12%).** **Far has the largest output error "
        "compared with softmax (178%).** "
        "No error can be computed for **Also and Broken**, because some values are not finite. Use smaller queries and "
        "keys. The output error of **Far** (178%) is larger than that of equal weights on all keys (95%)."
    }
    alone = ranking("softmax", make_errors(Broken=broken))
    assert alone.startswith("No error can be computed for **Broken**")
    text = ranking("softmax", make_errors(zero=math.nan, A=0.1))
    assert text == "The output of softmax contains values that are not finite."


def test_errors_that_round_alike_are_not_ranked():
    words = ranking("softmax", make_errors(A=0.121, B=0.119, C=0.5, D=0.502))
    assert words == (
        "**A and B have the smallest output error compared with softmax (12%).** "
        "**C and D have the largest output error compared with softmax (50%).** Equal weights on all keys would "
        "have an output "
        "error of 95%."
    )


@pytest.mark.parametrize(
    ("far", "words"),
    [
        ({"C": 0.9}, "The output error of **C** (90%) is hardly smaller than that of equal weights on all keys (95%)."),
        (
            {"C": 0.9, "D": 0.9},
            "The output error of **C and D** (90%) is hardly smaller than that of equal weights on all keys (95%).",
        ),
        ({"C": 0.95}, "The output error of **C** (95%) is no smaller than that of equal weights on all keys (95%)."),
        (
            {"C": 0.95, "D": 0.95},
            "The output error of **C and D** (95%) is no smaller than that of equal weights on all keys (95%).",
        ),
        ({"C": 0.96}, "The output error of **C** (96%) is larger than that of equal weights on all keys (95%)."),
        (
            {"C": 1.2, "D": 1.2},
            "The output error of **C and D** (120%) is larger than that of equal weights on all keys (95%).",
        ),
    ],
)
def test_the_finding_names_the_variants_that_are_hardly_better_than_equal_weights(far, words):
    text = ranking("softmax", make_errors(A=0.5, **far))
    assert text.startswith("**A has the smallest output error compared with softmax, but it is still 50%.** **C")
    assert text.endswith(f" {words}")


@pytest.mark.parametrize(
    ("error", "tail"),
    [
        (0.89, "Equal weights on all keys would have an output error of 95%."),
        (0.9, "The output error is hardly smaller than that of equal weights on all keys (95%)."),
        (0.94, "The output error is hardly smaller than that of equal weights on all keys (95%)."),
        (0.95, "Equal weights on all keys would also have an output error of 95%."),
        (0.96, "Equal weights on all keys would have an output error of only 95%."),
        (1.78, "Equal weights on all keys would have an output error of only 95%."),
    ],
)
def test_one_variant_is_compared_with_equal_weights(error, tail):
    words = ranking("softmax", make_errors(Linear=error))
    assert words == f"**Linear has an output error of {error:.0%} compared with softmax.** {tail}"


def test_the_baseline_of_causal_attention_averages_the_values_so_far():
    for errors in ({"A": 0.3}, {"A": 0.99}, {"A": 0.3, "B": 0.5}):
        assert "Equal weights on all keys up to the query" in ranking("softmax", make_errors(**errors), causal=True)
    for errors in ({"A": 0.99, "B": 1.5}, {"A": 0.3, "B": 0.94}):
        assert "equal weights on all keys up to the query (9" in ranking("softmax", make_errors(**errors), causal=True)
    chosen = [ac.get(key) for key in ("softmax", "linear")]
    assert "hardly smaller than that of equal weights on all keys up to the query (35%)." in headline(
        {a: compared_with_softmax(a) for a in chosen}, causal=True
    )
    assert "(with equal weights on all keys up to the query: 75%)" in variant_sentence(
        *make_compared("local", **WHOLE), causal=True
    )


@pytest.mark.parametrize(("least", "gain"), [(0.89, None), (0.9, "much "), (0.94, "much "), (0.951, ""), (1.2, "")])
def test_no_variant_is_close_if_equal_weights_are_as_close(least, gain):
    words = ranking("softmax", make_errors(A=least, B=1.78))
    farthest = "**B has the largest output error compared with softmax (178%).**"
    if gain is None:
        assert words == (
            f"**A has the smallest output error compared with softmax, but it is still {least:.0%}.** {farthest} The "
            f"output error of "
            "**B** (178%) is larger than that of equal weights on all keys (95%)."
        )
    else:
        assert words == (
            f"**No variant is {gain}better than equal weights on all keys (95% output error).** "
            f"**A has the smallest output error compared with softmax ({least:.0%}).** {farthest}"
        )


@pytest.mark.parametrize(("error", "better"), [(0.3, True), (0.95, False)])
def test_equally_distant_variants_are_not_named(error, better):
    words = ranking("softmax", make_errors(A=error, B=error))
    tail = f"{'' if better else 'also '}have an output error of 95%."
    assert words == (
        f"**All variants have an output error of {error:.0%} compared with softmax.** "
        f"Equal weights on all keys would {tail}"
    )


@pytest.mark.parametrize(("zero", "equal"), [(0.004, True), (0.006, False)])
def test_equal_weights_without_an_error_are_no_baseline(zero, equal):
    words = ranking("softmax", make_errors(zero=zero, A=zero, B=0.5))
    assert words.startswith("**Equal weights on all keys have the same output as softmax (0% output error).**") == equal
    assert ("No variant is better" in words) != equal
    alone = ranking("softmax", make_errors(zero=zero, A=zero))
    assert alone.endswith("compared with softmax.**") == equal


def test_variants_with_another_reference_are_ranked_separately():
    words = ranking("shared-QK softmax", make_errors(Reformer=0.0))
    assert words.startswith("**Reformer has an output error of 0% compared with shared-QK softmax.**")
    assert words.endswith(
        "These variants are compared with shared-QK softmax instead of softmax, so they are ranked separately."
    )
    assert "ranked" not in ranking("softmax", make_errors(Linear=0.2))


def compared_with_softmax(attention):
    return matrix(SMALL, attention)


def test_only_variants_with_the_same_reference_are_ranked():
    chosen = [ac.get(key) for key in ("softmax", "reformer", "linear", "local")]
    [[one], [other], _reasons] = findings({a: compared_with_softmax(a) for a in chosen})
    assert "softmax" in one.text
    assert "shared-QK softmax" not in one.text + one.explanation
    assert other.text.startswith("**Reformer")
    assert "Linear" not in other.text + other.explanation
    assert other.explanation.endswith(
        "These variants are compared with shared-QK softmax instead of softmax, so they are ranked separately."
    )
    assert headline({chosen[0]: compared_with_softmax(chosen[0])}).startswith("Add a variant")


def test_rows_that_sum_to_one_are_described_by_moved_weight_and_others_by_norms():
    local, relu2, trig = (ac.get("local", window=2), ac.get("relu2"), ac.get("performer", kind="trig", features=8))
    assert "of a row's weight to other keys, on average." in variant_sentence(local, compared_with_softmax(local))
    for attention in (relu2, trig):
        words, numbers = variant_sentence(attention, compared_with_softmax(attention)), compared_with_softmax(attention)
        assert f"from the matrix of softmax by {numbers.passport.relative_error:,.0%} (" in words
        assert f"The output error is {numbers.output_error:.0%} (with" in words
        assert "row's weight to other keys" not in words
        assert ("of the sum of absolute weights" in words) == (attention is trig)


@pytest.mark.parametrize(
    ("key", "difference", "words"),
    [
        ("softmax", False, "reference"),
        ("softmax", True, "reference"),
        ("local", False, "output error 25%"),
        ("local", True, "output error 25%"),
        ("reformer", False, "output error 25%\nreference shared-QK softmax"),
        ("reformer", True, "output error 25%\nreference shared-QK softmax"),
    ],
)
def test_a_panels_caption_has_its_output_error_and_its_reference(key, difference, words):
    assert caption(*make_compared(key, entropy=math.log(7), **WHOLE), difference=difference) == words


@pytest.mark.parametrize(
    ("left_out", "difference", "hidden", "shown"),
    [
        (0.254, False, "[CLS]", True),
        (0.254, True, "[CLS]", False),
        (0.254, False, "", False),
        (0.0, False, "[CLS]", False),
        (math.nan, False, "[CLS]", False),
    ],
)
def test_a_panels_caption_has_the_weight_on_hidden_tokens(left_out, difference, hidden, shown):
    attention, compared = make_compared("local", entropy=1.0, **WHOLE)
    lines = caption(attention, dataclasses.replace(compared, left_out=left_out), difference=difference, hidden=hidden)
    assert lines.partition("\n")[2] == "25% of the weight is not drawn" * shown


def test_the_headline_states_over_how_many_keys_each_variant_spreads_its_weights():
    keys = ("softmax", "linear", "local", "nystrom", "performer")
    made = [make_compared(key, entropy=math.log(n)) for key, n in zip(keys, (7, 9, 3, 1, 8), strict=True)]
    total = made[0][1].weights.shape[-1]

    def sentence(spreads):
        return f"**A query spreads its weights over about {spreads} (effective keys).**"

    assert spread_sentence(dict(made[:1]), causal=False) == sentence(f"7 of {total} keys in softmax")
    assert spread_sentence(dict(made[:4]), causal=False) == sentence(
        f"1 of {total} keys in Nyström, 3 in Local, 7 in softmax and 9 in Linear"
    )
    assert spread_sentence(dict(made), causal=False) == sentence(f"1 of {total} keys in Nyström and 9 in Linear")
    assert spread_sentence(dict([make_compared("local", row_sum_max=math.nan)]), causal=False) == ""
    assert spread_sentence(dict(made[:1]), causal=True) == sentence("7 keys in softmax")
    attention, whole = made[0]
    for count, is_empty in ((1, True), (2, False)):
        one = dataclasses.replace(whole, weights=whole.weights[..., :count])
        assert (spread_sentence({attention: one}, causal=False) == "") == is_empty


def test_the_details_of_a_panel_say_which_tokens_each_error_covers_when_special_tokens_are_hidden():
    numbers = make_compared("local", output=0.75, relative_error=0.125, entropy=1.5, **WHOLE)
    plain = "Entropy 1.50 nats · output error 75% · matrix error 12% · reference softmax"
    assert details(*numbers, hidden=joined_tokens(["[CLS]", "[SEP]", "[SEP]"])) == (
        f"{plain}. All numbers here except output errors and row sums are computed without the special tokens [CLS] "
        "and [SEP]; the remaining weights are rescaled."
    )
    assert details(*numbers, hidden=joined_tokens([])) == plain
    assert excluded_note("") == ""
    assert joined_tokens(["a", "a"]) == "the special token a"
    assert joined_tokens(["a", "b", "c"]) == "the special tokens a, b and c"


@pytest.mark.parametrize("hidden", ["", "[CLS] and [SEP]"])
def test_the_note_names_the_tokens_and_heads_of_the_output_error_and_of_the_matrices(hidden):
    rest = f"Not drawn: {hidden}." if hidden else ""
    heads = (
        "The output error and the masked weight include all heads. All other numbers describe the average of the "
        "heads' matrices."
    )
    assert scope_note(hidden, all_heads=False) == rest
    assert scope_note(hidden, all_heads=True) == f"{heads} {rest}".strip()


def test_the_details_of_softmax_have_no_error():
    assert details(*make_compared("softmax", entropy=1.5, **WHOLE), hidden="") == "Entropy 1.50 nats"


def test_a_panel_reports_weights_that_are_not_finite():
    broken = {"row_sum_min": math.nan, "row_sum_max": math.nan, "relative_error": math.nan, "entropy": math.nan}
    numbers = make_compared("local", output=math.nan, **broken)
    assert caption(*numbers, difference=False) == "Some weights are not finite. Use smaller queries and keys."
    assert details(*numbers, hidden="[CLS]") == ""


@pytest.mark.parametrize(("error", "close"), [(0.47, True), (0.48, False)])
def test_the_smallest_error_is_called_large_above_half_of_that_of_equal_weights(error, close):
    text = ranking("softmax", make_errors(Near=error, Far=0.9))
    still = f"**Near has the smallest output error compared with softmax, but it is still {error:.0%}.** "
    assert text.startswith(
        f"**Near has the smallest output error compared with softmax ({error:.0%}).** " if close else still
    )
    both = ranking("softmax", make_errors(Near=error, Also=error, Far=0.9))
    assert ("**Also and Near have the smallest output error compared with softmax, but it is still" in both) != close


def test_variants_no_better_than_equal_weights_are_ranked():
    given = make_errors(zero=0.5, Far=1.78, Near=0.62, Middle=0.9)
    assert ranking("softmax", given) == (
        "**No variant is better than equal weights on all keys (50% output error).** "
        "**Near has the smallest output error compared with softmax (62%).** **Far has the largest output error "
        "compared with softmax (178%).**"
    )


def test_the_headline_compares_output_errors_with_equal_weights():
    chosen = [ac.get(key) for key in ("softmax", "linear", "local")]
    linear, local = (dataclasses.replace(compared_with_softmax(a), uniform_error=0.9) for a in chosen[1:])
    errors = {
        chosen[0]: compared_with_softmax(chosen[0]),
        chosen[1]: dataclasses.replace(linear, output_error=0.7),
        chosen[2]: dataclasses.replace(local, output_error=0.3),
    }
    assert headline(errors).startswith(
        "**Local with window 16 has the smallest output error compared with softmax (30%).** "
        "**Linear has the largest output error compared with softmax (70%).** Equal weights on all keys would have "
        "an output "
        "error of 90%."
    )


@pytest.mark.parametrize(("entropy", "flat"), [(2.0, False), (2.40, False), (2.41, True)])
def test_linear_attention_is_called_flat_where_its_rows_spread_over_more_keys(entropy, flat):
    compared = dict(
        [make_compared("softmax", entropy=2.0), make_compared("linear", entropy=entropy), make_compared("local")]
    )
    words = "has no exponential, so it weights keys more evenly than softmax."
    assert flatness(compared, "**Linear**") == (f"**Linear** {words}" if flat else "")
    assert (f" **Linear** {words}" in headline(compared)) == flat
    assert ("has no exponential" in headline(compared)) == flat
    assert flatness(dict([make_compared("linear", entropy=9.0)]), "It") == ""
    assert flatness(dict([make_compared("softmax", entropy=math.nan), make_compared("linear")]), "It") == ""


@pytest.mark.parametrize(
    ("linear", "local"),
    [
        *((each, 0.49) for each in (0.82, 0.79, 0.78, 0.6, 0.84, 0.89, 0.9, 0.4)),
        *((each, 0.86) for each in (0.99, 0.89)),
    ],
)
def test_each_variant_is_explained_once_in_the_order_of_the_panels(linear, local):
    flat = "has no exponential, so it weights keys more evenly than softmax."
    compared = dict(
        [make_compared("softmax", entropy=2.0), make_compared("linear", entropy=2.41), make_compared("local")]
    )
    errors = {"softmax": 0.0, "linear": linear, "local": local}
    compared = {
        a: dataclasses.replace(numbers, output_error=errors[a.key], uniform_error=0.84, misplaced=0.26)
        for a, numbers in compared.items()
    }
    window = "masks 26% of softmax's weight."
    closest = f"**Local with window 16 has the smallest output error compared with softmax (still 49%). It {window}**"
    no_better = (
        "**No variant is better than equal weights on all keys (84% output error).** "
        "**Local with window 16 has the smallest output error compared with softmax (86%).**"
    )
    farthest = "**Linear** has the largest output error"
    because = "because it has no exponential and weights keys more evenly."
    other = f"; with equal weights on all keys: 84%), {because}"
    almost = f", almost that of equal weights, 84%), {because}"
    expected = {
        (0.82, 0.49): f"{closest} {farthest} (82%{almost}",
        (0.79, 0.49): f"{closest} {farthest} (79%{almost}",
        (0.78, 0.49): f"{closest} {farthest} (78%{other}",
        (0.6, 0.49): f"{closest} {farthest} (60%{other}",
        (0.84, 0.49): f"{closest} {farthest} (84%{other}",
        (0.89, 0.49): f"{closest} {farthest} (89%{other}",
        (
            0.9,
            0.49,
        ): f"{closest} Linear has the largest output error compared with softmax (90%). **Linear** {flat} Its error is "
        "90% (with equal weights on all keys: 84%).",
        (0.4, 0.49): "**Linear has the smallest output error compared with softmax (40%).** "
        "**Local with window 16 has the largest output error compared with softmax (49%).** Equal weights "
        "on all keys would have an output error of 84%. "
        f"**Linear** {flat} **Local** {window}",
        (
            0.99,
            0.86,
        ): f"{no_better} **Linear has the largest output error compared with softmax (99%).** **Linear** {flat} Its "
        f"error is 99% (with equal weights on all keys: 84%). **Local** {window}",
        (0.89, 0.86): f"{no_better} {farthest} (89%{other} **Local** {window}",
    }
    assert headline(compared) == expected[linear, local]


def explained(*variants):
    """Return the finding about softmax and other variants, given each one's output error; each hides 26%."""
    compared = dict([make_compared("softmax", entropy=2.0)])
    for attention, error in variants:
        numbers = dataclasses.replace(
            compared_with_softmax(attention), output_error=error, uniform_error=0.84, misplaced=0.26
        )
        if attention.key == "linear":  # Its rows are flat.
            numbers = dataclasses.replace(numbers, passport=dataclasses.replace(numbers.passport, entropy=2.41))
        compared[attention] = numbers
    return headline(compared)


WINDOW = "masks 26% of softmax's weight."


def test_the_only_variant_is_explained_by_its_name_after_its_error():
    text = explained((ac.get("local"), 0.3))
    assert text.startswith("**Local with window 16 has an output error of 30% compared with softmax.**")
    assert text.endswith(f" **Local** {WINDOW}")


def test_variants_that_are_equally_close_are_each_explained_by_name():
    text = explained((ac.get("local"), 0.3), (ac.get("atrous"), 0.3), (ac.get("linear"), 0.7))
    assert [f"**{name}** {WINDOW}" in text for name in ("Local", "Atrous")] == [True, True]


def test_variants_that_are_equally_far_are_all_named():
    text = explained((ac.get("local"), 0.3), (ac.get("linear"), 0.7), (ac.get("cosine"), 0.7))
    assert "**Cosine and Linear have the largest output error compared with softmax (70%).**" in text


def test_the_cause_of_the_smallest_error_is_not_repeated_for_another_reference():
    pair = [(ac.get("reformer", rounds=rounds), error) for rounds, error in ((1, 0.2), (2, 0.1))]
    text = explained((ac.get("local"), 0.3), (ac.get("linear"), 0.7), *pair)
    assert "smallest output error compared with shared-QK softmax" in text
    assert text.count(WINDOW) == 1


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_variant_without_a_finite_error_takes_no_explanation_from_the_others(broken):
    text = explained((ac.get("linear"), broken), (ac.get("local"), 0.3), (ac.get("atrous"), 0.7))
    assert "**Local with window 16 has the smallest output error compared with softmax (30%).**" in text
    assert all(f"**{name}** {WINDOW}" in text for name in ("Local", "Atrous"))


@pytest.mark.parametrize(("share", "words"), [(0.004, ""), (0.006, "1%"), (0.4, "40%")])
def test_the_weight_hidden_by_a_window(share, words):
    attention, numbers = make_compared("local", total_variation=0.9)
    sentence = lost_weight(attention, dataclasses.replace(numbers, misplaced=share), "**Local**")
    masks = "**Local** masks"
    assert sentence == bool(words) * f"{masks} {words} of softmax's weight."
    local = ac.get("local", window=2)
    outside = ~local.mask(16, causal=False).numpy()
    share = (compared_with_softmax(ac.get("softmax")).weights * outside).sum(-1).mean()
    assert f" masks {share:.0%} of softmax's weight" in lost_weight(local, compared_with_softmax(local), "It")
    assert lost_weight(*make_compared("linear"), "It") == ""
    for first, last, end in (
        (0.06, 0.06, ""),
        (0.07, 0.07, ", mostly on [CLS] and [SEP]"),
        (0.14, 0.01, ", mostly on [CLS]"),
    ):
        found = dataclasses.replace(numbers, misplaced=0.26, misplaced_special={"[CLS]": first, "[SEP]": last})
        assert lost_weight(attention, found, "**Local**") == f"{masks} 26% of softmax's weight{end}."
        hidden = dataclasses.replace(found, left_out=0.1)
        end += " (not drawn)" * bool(end)
        assert lost_weight(attention, hidden, "**Local**") == f"{masks} 26% of softmax's weight{end}."


MASKED = [each.key for each in ac.all_variants() if each.mask or each.pattern]
WORDS = {
    "blocks": "blocks~block~4~blocks~1",
    "bigbird": "bigbird~window~1~global_tokens~1",
    "heavy_hitters": "heavy_hitters~recent~2~heavy~2",
    "local": "local~window~2",
    "longformer": "longformer~window~2",
    "sink": "sink~window~2",
    "sparse": "sparse~window~2",
}
"""Settings at which a variant with a mask masks some pairs of 16 tokens, if its default settings mask none."""


@pytest.mark.parametrize("key", MASKED)
def test_the_weight_hidden_by_a_mask(key):
    attention = ac.from_word(WORDS.get(key, key))
    numbers = compared_with_softmax(attention)
    outside = ~(numbers.weights > 0)
    share = (compared_with_softmax(ac.get("softmax")).weights * outside).sum(-1).mean()
    is_share = round(share, 2) > 0 and numbers.misplaced == pytest.approx(share, abs=1e-6)
    assert is_masked_softmax(attention.variant) == is_share
    words = lost_weight(attention, numbers, "It")
    masks = f"It masks {share:.0%} of softmax's weight."
    assert words == masks if is_share else "masks" not in words


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"landmarks": 15}, 0.08, "It replaces groups of tokens by their means, the landmarks."),
        ({"landmarks": 16}, 0.006, "It only approximates an inverse matrix."),
        ({"landmarks": 16}, 0.004, ""),
    ],
)
def test_landmarks_blur_groups_of_tokens_unless_each_token_is_its_own(settings, error, words):
    attention = ac.get("nystrom", **settings)
    numbers = dataclasses.replace(compared_with_softmax(attention), output_error=error)
    assert lost_weight(attention, numbers, "It") == words


@pytest.mark.parametrize(
    ("low", "high", "sums"),
    [(0.51, 1.49, ""), (0.49, 1.0, "0.49 … 1"), (1.0, 1.51, "1 … 1.51"), (-197, 8.43, "−197 … 8.43")],
)
def test_row_sums_far_from_one_are_the_reason_for_an_error(low, high, sums):
    numbers = make_compared("sigmoid", row_sum_min=low, row_sum_max=high)
    text = f"The rows of It sum to {sums}, not to 1, so its outputs differ in size from those of softmax."
    assert lost_weight(*numbers, "It") == (text if sums else "")
    assert lost_weight(*make_compared("sigmoid", output=0.004, row_sum_min=low, row_sum_max=high), "It") == ""


def test_a_very_large_error_has_separated_thousands():
    assert "**Gated linear has an output error of 10,336% compared" in ranking(
        "softmax", make_errors(**{"Gated linear": 103.36})
    )
    assert rankings.in_percent(103.36) == 10336


def with_lowest_weight(key, lowest, **numbers):
    attention, compared = make_compared(key, **numbers)
    weights = np.full((4, 4), np.nan)
    weights[0, 0] = lowest
    return attention, dataclasses.replace(compared, weights=weights)


@pytest.mark.parametrize(
    ("key", "lowest", "share", "noted"),
    [
        ("performer", -0.1, 0.1, True),
        ("performer", 0.0, 0.0, False),
        ("performer", -1e-7, 0.0, False),
        ("nystrom", -0.1, 0.5, False),
        ("nystrom", -0.001, 0.0005, True),
    ],
)
def test_orange_is_explained_unless_the_text_below_explains_the_negative_weights(key, lowest, share, noted):
    matrices = dict([make_compared("softmax"), with_lowest_weight(key, lowest, negative_mass=share)])
    orange = "Orange: negative weights, which subtract values from the output."
    assert sign_note(matrices, difference=False) == (orange if noted else "")
    assert bool(negative_weights(*list(matrices.items())[1])) == (share == 0.5)


def test_the_colours_of_differences_are_explained():
    pair = [make_compared("softmax"), make_compared("nystrom")]
    assert sign_note(dict(pair), difference=True) == "Blue: more weight than softmax gives. Orange: less weight."
    mixed = "Blue: more weight than the reference gives. Orange: less weight."
    assert sign_note(dict([*pair, make_compared("reformer")]), difference=True) == mixed


@pytest.mark.parametrize(
    ("key", "share", "named"),
    [("nystrom", 0.284, True), ("nystrom", 0.0051, True), ("nystrom", 0.005, False), ("performer", 0.5, False)],
)
def test_the_inverse_is_the_reason_for_negative_weights_of_nystrom(key, share, named):
    numbers = make_compared(key, negative_mass=share)
    words = "**Nyström** multiplies by an inverse matrix, which can have negative entries, so some"
    shown = f"{words} weights are negative (orange). By absolute value, they make up {share:.0%} of the weight shown."
    assert negative_weights(*numbers) == (shown if named else "")
    differences = f"{words} of its weights are negative. By absolute value, they make up {share:.0%} of its weight."
    assert negative_weights(*numbers, difference=True) == (differences if named else "")
    assert (shown in headline(dict([numbers, make_compared("softmax")]))) == named


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("linear", "Linear"),
        ("local~window~4", "Local with window 4"),
        ("topk~k~8", "Top-k with k = 8"),
        ("nystrom~landmarks~8", "Nyström with 8 landmarks"),
        ("nystrom~landmarks~1", "Nyström with 1 landmark"),
        ("softmax~temperature~2", "Softmax with temperature 2.0"),
    ],
)
def test_a_setting_follows_the_name_in_words(word, name):
    assert sentence_name(ac.from_word(word)) == name


def make_compared(key, *, output=0.25, zero=0.75, **numbers):
    attention = ac.get(key)
    text = compared_with_softmax(attention)
    passport = dataclasses.replace(text.passport, **numbers)
    return attention, dataclasses.replace(text, passport=passport, output_error=output, uniform_error=zero)


WHOLE = {"row_sum_min": 1.0, "row_sum_max": 1.0, "negative_mass": 0.0}


def test_the_sentence_on_one_variant_has_its_numbers():
    assert variant_sentence(*make_compared("local", total_variation=0.4, **WHOLE)) == (
        "Compared with softmax, **Local with window 16** moves 40% of a row's weight to other keys, on average. "
        "The output error is 25% (with equal weights on all keys: 75%)."
    )
    for share, words in (
        (1e-7, "gives the same weights as softmax."),
        (1e-5, "moves less than 0.5% of a row's weight to other keys, on average."),
        (0.004, "moves less than 0.5% of a row's weight to other keys, on average."),
        (0.006, " moves 1% of a row's weight to"),
    ):
        assert words in variant_sentence(*make_compared("local", total_variation=share, **WHOLE))
    in_norms = (
        "The matrix of **Local with window 16** differs from the matrix of softmax by 40% (matrix error). The output "
        "error is 25% (with equal weights on all keys: 75%)."
    )
    halved = {"relative_error": 0.4, "row_sum_min": 0.5, "row_sum_max": 1.0}
    assert variant_sentence(*make_compared("local", **halved, negative_mass=0.0)) == in_norms
    assert variant_sentence(*make_compared("local", **halved, negative_mass=NEGATIVE_TOLERANCE)) == in_norms
    assert variant_sentence(*make_compared("local", **halved, negative_mass=0.125)) == (
        f"{in_norms} Negative weights make up 12.5% of the sum of absolute weights."
    )


@pytest.mark.parametrize(
    ("negative", "tail"),
    [(NEGATIVE_TOLERANCE, ""), (0.125, " · negative weights make up 12.5% of the sum of absolute weights")],
)
@pytest.mark.parametrize(
    ("low", "high", "sums"),
    [(0.25, 0.75, " · rows sum to 0.25 … 0.75"), (0.997, 1.002, ""), (1.5, 1.5, " · rows sum to 1.5")],
)
def test_the_details_of_a_panel_have_row_sums_other_than_one_and_negative_mass(low, high, sums, negative, tail):
    numbers = {"relative_error": 1 / 3, "entropy": 1.5, "negative_mass": negative}
    words = details(*make_compared("sigmoid", **numbers, row_sum_min=low, row_sum_max=high), hidden="")
    assert words == f"Entropy 1.50 nats · output error 25% · matrix error 33% · reference softmax{sums}{tail}"


TOKENS = ("the", "cat", "the (2)")


def shares(**weights):
    keys = {"the": 0, "cat": 1, "the_2": 2}
    return [KeyWeight(key=keys[token], weight=weight) for token, weight in weights.items()]


def test_a_row_of_softmax_names_its_heaviest_keys_if_there_are_any():
    assert largest_weights(shares(cat=0.612, the_2=0.05), TOKENS) == "top keys: “cat” 61%; “the (2)” 5%"
    assert largest_weights([], TOKENS) == "no key has a weight of 0.5% or more"


@pytest.mark.parametrize(
    ("weight", "keys", "text"),
    [
        (0.02, 100, "top keys: “t1” 2%"),
        (0.019, 100, "no key stands out (largest weight 2%)"),
        (0.05, 10, "top keys: “t1” 5%"),
        (0.049, 10, "no key stands out (largest weight 5%)"),
    ],
)
def test_a_row_of_nearly_equal_weights_names_no_key(weight, keys, text):
    assert largest_weights([KeyWeight(key=1, weight=weight)], [f"t{i}" for i in range(keys)]) == text


def test_the_largest_changes_of_weight_are_listed():
    losses, gains = shares(cat=-0.21), shares(the=0.04, the_2=0.031)
    both = "largest changes: “cat” −21%; “the” +4%; “the (2)” +3%"
    assert largest_changes(losses, gains, TOKENS, "softmax") == both
    assert largest_changes(losses, [], TOKENS, "softmax") == "largest changes: “cat” −21%"
    assert largest_changes([], gains, TOKENS, "softmax") == "largest changes: “the” +4%; “the (2)” +3%"
    assert largest_changes([], [], TOKENS, "softmax") == "every weight is within 0.5% of its value in softmax"
    assert largest_changes(losses, gains, TOKENS, "shared-QK softmax") == f"{both} (compared with shared-QK softmax)"
    assert largest_changes([], [], TOKENS, "shared-QK softmax") == (
        "every weight is within 0.5% of its value in shared-QK softmax"
    )


def head(**scores):
    return HeadScores(layer=4, head=7, **dict.fromkeys(HeadScores.columns(), 0.25) | scores)


def test_a_head_is_described_by_all_scores_with_dashes_for_undefined_ones():
    assert head_description(head(induction=math.nan, distance=3.14)) == (
        "layer 4, head 7: induction –, previous token 0.25, first-token sink 0.25, entropy (nats) 0.25 "
        "and mean distance (tokens) 3.1"
    )


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("induction", "on average, a repeated token gives 25% of its weight to the tokens that followed"),
        ("previous", "on average, a query gives 25% of its weight to the previous token"),
        ("sink", "on average, a query gives 25% of its weight to “[CLS]”"),
        ("entropy", "has the lowest entropy: 0.25 nats, averaged over queries"),
        ("distance", "has the shortest mean distance between query and key: 0.25 tokens"),
    ],
)
def test_the_head_that_comes_first_is_named_with_its_score(by, words):
    text = top_head([head(), head(**{by: 0.5})], by, "[CLS]")
    assert text.startswith("**Layer 4, head 7** ")
    assert words in text


def test_the_heads_that_attend_most_to_the_previous_and_to_the_first_token_are_named():
    first, second = head(previous=0.9), dataclasses.replace(head(sink=0.75), layer=5, head=1)
    assert head_findings([first, second], "[CLS]") == (
        "**Layer 4, head 7** attends most to the previous token (weight 90%), and **layer 5, head 1** to “[CLS]” "
        "(weight 75%)."
    )
    assert head_findings([head(previous=0.9, sink=0.75), dataclasses.replace(second, sink=0.1)], "[CLS]") == (
        "**Layer 4, head 7** attends most both to the previous token (weight 90%) and to “[CLS]” (weight 75%)."
    )
    assert head_findings([first], "[CLS]") == ""
    assert head_findings([head(previous=math.nan), head(previous=math.nan)], "[CLS]") == ""
    assert head_findings([head(sink=math.nan), head(sink=math.nan)], "[CLS]") == ""


def test_the_title_of_bars_says_which_keys_are_left_out():
    fields = {"drawn": 96, "total": 120, "difference": False, "has_negative": False}
    assert bars_title(3, "on", **fields | {"total": 96}) == "**Weights of query 3 “on”**"
    assert bars_title(3, "on", **fields).endswith("** · :small[96 of 120 keys: those with the largest weights]")
    text = bars_title(3, "on", **fields | {"difference": True})
    assert text.startswith("**Differences of the weights of query 3 “on” from the reference** · ")
    assert text.endswith(":small[96 of 120 keys: those with the largest differences]")


def test_the_title_of_bars_says_what_orange_means_if_a_bar_is_orange():
    fields = {"drawn": 9, "total": 9, "has_negative": True}
    title = "**Weights of query 3 “on”**"
    assert bars_title(3, "on", **fields, difference=False) == f"{title} · :small[orange: negative weights]"
    assert bars_title(3, "on", **fields, difference=True).endswith(" · :small[orange: less weight]")
    fields["total"] = 12
    assert bars_title(3, "on", **fields, difference=False) == (
        f"{title} · :small[9 of 12 keys: those with the largest weights] · :small[orange: negative weights]"
    )


def test_undefined_scores_are_explained():
    assert "no token repeats with another token in between" in top_head(
        [head(induction=math.nan)], "induction", "[CLS]"
    )
    assert top_head([head(sink=math.nan)], "sink", "[CLS]") == "The score “first-token sink” needs at least two tokens."


@pytest.mark.parametrize(
    ("largest", "shared", "hinted"), [(0.019, True, True), (0.021, True, False), (0.019, False, False)]
)
def test_a_panel_without_visible_structure_states_its_largest_weight_on_a_shared_scale(largest, shared, hinted):
    attention, compared = make_compared("linear", entropy=1.0, **WHOLE)
    weights = np.full((100, 100), 0.01)
    weights[0, 0] = largest
    flat = dataclasses.replace(compared, weights=weights)
    lines = caption(attention, flat, difference=False, shared_scale=shared)
    assert lines.endswith("\nweights up to 1.9%") == hinted
    assert "weights up to" not in caption(attention, flat, difference=True, shared_scale=True)


@pytest.mark.parametrize(("rank", "words"), [(12, True), (13, False)])
def test_variants_of_low_rank_are_named(rank, words):
    text = "Low rank: Nyström (12). That many rows determine all 24 rows of the matrix."
    assert rank_note({"Softmax": 24.0, "Nyström": rank}, 24) == (text if words else "")
