"""Tests of Nyström's story: landmarks, an inverse that is better when inexact, and softmax from its own columns."""

from dataclasses import replace

import numpy as np
import pytest
from driver import curves, open_page, spoken
from stories import figures, head, seen, source

import attention_core as ac
from attention_core.analysis.low_rank import cur
from attention_core.experiments import cur_error
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import percent
from pages.inside import landmarks
from pages.inside.landmarks import pooled
from pages.inside.stories.landmark import help_sentence
from pages.inside.stories.nystrom import formula_sentence, inverse_sentence, inverted_sentence, own_errors

SMALL = {"input": "synthetic", "n": "24", "d": "8", "heads": "2", "head": "1", "step": "4"}


def open_columns(**query):
    return open_page("inside", SMALL | {"inside": "nystrom~landmarks~6"} | query)


NAMES = {"even": "evenly spaced", "nearest": "nearest to landmarks", "leverage": "largest leverage"}


def errors(pick, word="nystrom~landmarks~6"):
    (task,) = cur_error.tasks(source(), head=1, word=word, pick=pick)
    rows = cur_error.run(task)
    return rows, own_errors(rows, pick, min(int(word.split("~")[2]), 24))


@pytest.mark.parametrize("pick", cur.PICKS)
def test_it_says_and_draws_what_the_core_found(pick):
    at = open_columns(i_pick=pick)
    assert not at.exception
    assert not at.warning
    rows, own = errors(pick)
    looked = cur.cur_approximation(source().load(), ac.get("nystrom", landmarks=6), 1, pick)
    assert formula_sentence(looked, own, 6).replace("\N{NO-BREAK SPACE}", " ") in spoken(at)
    assert f"The formula is off by {percent(own['formula'])}" in spoken(at)
    drawn = curves(at)
    assert set(drawn) == {
        "Nyström's formula",
        "best middle",
        "Nyström attention",
        "best of rank m (SVD)",
        "uniform attention",
    }
    for made, name in (("formula", "Nyström's formula"), ("best", "best middle"), ("attention", "Nyström attention")):
        x, y = drawn[name]
        wanted = [(row.m, row.error) for row in rows if row.made == made and row.pick in (None, pick)]
        assert list(zip(x, y, strict=True)) == [(m, pytest.approx(error)) for m, error in wanted]
    for other, name in NAMES.items():
        error = next(row.error for row in rows if (row.made, row.pick, row.m) == ("formula", other, 6))
        assert f"Nyström's formula, {name} | **{percent(error)}**" in spoken(at)
    assert f"best middle, {NAMES[pick]}" in spoken(at)
    assert "1 × 10⁻¹⁰ of the largest" in " ".join(c.value.replace("\N{NO-BREAK SPACE}", " ") for c in at.main.caption)


def test_the_choice_travels_in_the_link_and_one_that_does_not_exist_is_named():
    at = open_columns()
    assert "i_pick" not in at.query_params
    at = at.button_group(key="i_pick").set_value("leverage").run()
    assert at.query_params["i_pick"] == "leverage"
    assert "best middle, largest leverage" in spoken(at)
    at = open_columns(i_pick="<b>luck</b>")
    assert not at.exception
    assert any("i_pick" in w.value.replace("\\", "") for w in at.warning)
    assert "best middle, evenly spaced" in spoken(at)


def test_what_nystrom_attention_does_is_not_changed_by_the_choice():
    lines = [spoken(open_columns(i_pick=pick)).split("**Nyström attention**")[1] for pick in cur.PICKS]
    assert len({line.split("is off by ")[1].split("%")[0] for line in lines}) == 1


def test_a_causal_switch_changes_nothing_here():
    assert spoken(open_columns(causal="1")) == spoken(open_columns())


LOOKED = cur.cur_approximation(source().load(), ac.get("nystrom", landmarks=6), 1, "even")


BASE = {"formula": 0.5, "best": 0.3, "floor": 0.2, "attention": 0.4, "uniform": 0.9}


def test_blocks_are_told_by_their_sizes_and_ranks():
    said = formula_sentence(replace(LOOKED, rank=20, common_rank=5), BASE, 6)
    assert "with 6 of its columns and 6 of its rows" in said
    assert "Here A has rank 5 and softmax 20." in said
    assert "off by 50%" in said
    assert "by 30%; no matrix of rank 6 is off by less than 20%" in said
    assert "24 keys, so even one column takes all 576 products" in said
    assert "324 products, and is off by 40%" in said


def test_with_all_columns_there_is_nothing_to_fill():
    every = replace(LOOKED, columns=np.arange(24), rows=np.arange(24))
    said = formula_sentence(every, BASE | {"formula": 1e-12}, 24)
    assert said.startswith("All 24 columns and rows are chosen, D is empty, and the formula is off by 1.0")
    assert "no matrix of rank" not in said
    assert "that saves nothing" in said


@pytest.mark.parametrize(
    ("formula", "uniform", "alarm"),
    [(0.91, 0.9, True), (0.9, 0.9, False), (0.09, 0.05, False), (0.11, 0.05, True), (1e-16, 0.0, False)],
)
def test_a_formula_that_loses_to_uniform_attention_says_why(formula, uniform, alarm):
    said = formula_sentence(replace(LOOKED, condition=520.0), BASE | {"formula": formula, "uniform": uniform}, 6)
    assert ("Looking everywhere alike would be off by" in said) == alarm
    assert ("is 520 times the smallest" in said) == alarm


@pytest.mark.parametrize(
    ("attention", "words"),
    [
        (0.4, "closer to softmax than"),
        (0.495, "as far from softmax as"),
        (0.51, "as far from softmax as"),
        (0.52, "further from softmax than"),
    ],
)
def test_nystrom_attention_is_ranked_against_the_formula(attention, words):
    assert f": {words} the formula on softmax itself." in formula_sentence(LOOKED, BASE | {"attention": attention}, 6)


@pytest.mark.parametrize(("m", "saves"), [(9, True), (10, False)])
def test_whether_landmarks_save_anything(m, saves):
    assert (2 * 24 * m + m * m < 24 * 24) == saves
    assert ("saves nothing" in formula_sentence(LOOKED, BASE, m)) != saves


def test_a_model_that_hides_the_future_is_said_to_be_read_both_ways():
    words = "its softmax is taken both ways here"
    text = {"input": "text", "text": "@english", "layer": "2", "head": "1"}
    assert words in spoken(open_columns(**text, model="smollm2"))
    assert words not in spoken(open_columns(**text, model="minilm"))


@pytest.mark.parametrize(
    ("share", "words"), [(0.5, "50%"), (33.064, "3,306%"), (0.0, "0%"), (0.0312, "3.1%"), (2e9, "2 × 10¹¹%")]
)
def test_shares_of_any_size_are_readable(share, words):
    assert percent(share).replace("\N{NO-BREAK SPACE}", " ") == words


def test_the_page_says_when_the_exact_inverse_is_worse_and_when_it_is_not():
    real = {"input": "text", "text": "@english", "layer": "2", "head": "3", "step": "3"}
    assert "worse than stopping early" in spoken(open_columns(**real, inside="nystrom"))
    whole = spoken(open_columns(**real, inside="nystrom~landmarks~64"))
    assert "a better inverse makes a better matrix" in whole
    assert "worse than stopping early" not in whole
    needle = {"kind": "needle", "n": "256", "heads": "4", "d": "32", "step": "3"}
    close = spoken(open_columns(**needle, inside="nystrom"))
    assert "better inverse makes a better matrix" not in close
    assert "Stopping early does slightly better" in close


def inverses(*errors):
    """Return rows with these errors: one per number of iterations, and the exact inverse last."""
    counts = [*range(1, len(errors)), None]
    return [
        InverseRow(iterations=count, error=error, residual=0.1, largest=1234.0, negative=0.0)
        for count, error in zip(counts, errors, strict=True)
    ]


@pytest.mark.parametrize(
    ("errors", "ending"),
    [
        ((0.5, 0.2, 0.9), "stopping early leaves these alone."),
        ((0.5, 0.2, 0.2041), "stopping early leaves these alone."),
        ((0.5, 0.2, 0.2039), "not in how their matrix is inverted."),
        ((0.05, 0.02, 0.09), "Stopping early does slightly better than an exact inverse here, and both come close."),
        ((0.05, 0.02, 0.0203), "Here a better inverse makes a better matrix: the landmarks miss little."),
        ((0.5, 0.2, 0.15), "not in how their matrix is inverted."),
    ],
)
def test_a_better_inverse_is_weighed_against_the_matrix_it_makes(errors, ending):
    told = inverse_sentence(inverses(*errors), condition=520.0)
    assert told.startswith(
        f"The best matrix comes after 2 of 2 iterations, off by {errors[1]:.0%}; the exact inverse is off by "
        f"{errors[2]:.0%}."
    )
    assert told.endswith(ending)
    assert ("is 520 times the smallest" in told) == ("(its entries reach 1,234)" in told) == ("alone" in ending)


@pytest.mark.parametrize(("m", "saves"), [(11, True), (12, False), (23, False), (24, True)])
def test_landmarks_for_half_of_the_tokens_save_nothing(m, saves):
    at = open_columns(inside=f"nystrom~landmarks~{m}", step="2")
    assert ("With so many landmarks for so few tokens nothing is saved." in spoken(at)) != saves


@pytest.mark.parametrize("method", ["segment_means", "kmeans"])
def test_landmarks_forget_what_varies_within_them(method):
    q, k, _ = head()
    attention = ac.get("nystrom", landmarks=5, method=method)
    told = landmarks.which(seen(attention)).sentence
    queries, keys = figures(told, r"lie ([\d.]+)% of the queries' variance and ([\d.]+)% of the keys'")
    assert ("each is the mean of 4 to 5 neighbours." in told) == (method == "segment_means")
    assert ("the mean of tokens that are alike" in told) == (method == "kmeans")
    if method == "segment_means":
        for found, x in ((queries, q), (keys, k)):
            groups = x.tensor_split(5)
            within = sum(float((g - g.mean(0)).square().sum()) for g in groups)
            assert found == pytest.approx(100 * within / float((x - x.mean(0)).square().sum()), abs=0.51)
    whole = landmarks.which(seen(ac.get("nystrom", landmarks=24))).sentence
    assert whole == "Every one of the 24 tokens is its own landmark: nothing is averaged, nothing is lost."


def test_an_inverse_helps_where_it_brings_the_matrix_closer():
    assert help_sentence(0.4, 0.3, 0.012) == (
        "Here it helps: its matrix is off by 30% in place of 40%, at the price of 1.2% negative mass."
    )
    for other, shown in ((0.4, "40%"), (0.5, "50%")):
        assert help_sentence(0.4, other, 0.012) == (
            f"**Here it does not help**: its matrix is off by {shown} in place of 40%, and 1.2% of its mass is "
            "negative."
        )


def test_the_double_softmax_says_whether_nystroms_inverse_would_help():
    at = open_columns(inside="landmark~landmarks~24", step="3")
    assert "Here it helps" in spoken(at), "with every token its own landmark Nyström is softmax"
    q, k, _ = head()
    exact = float(ac.metrics.entropy(ac.get("softmax").weights(q, k)).mean().exp())
    wide, narrow = figures(spoken(at), r"spreads like ([\d.]+) equally weighted keys, in softmax like ([\d.]+)\.")
    assert wide > narrow == pytest.approx(exact, abs=0.051)


def test_one_iteration_is_told_from_several():
    assert "2 of 6 directions are inverted to nine tenths after 1 iteration;" in inverted_sentence(2, 6, 1, 0.5)
    assert "2 of 6 directions are inverted to nine tenths after 2 iterations;" in inverted_sentence(2, 6, 2, 0.5)


@pytest.mark.parametrize(
    ("least", "most", "words"), [(16, 16, "the mean of 16 neighbours."), (1, 2, "the mean of 1 to 2 neighbours.")]
)
def test_landmarks_of_one_size_are_not_told_from_and_to(least, most, words):
    assert pooled(32, 512, least, most).endswith(words)
