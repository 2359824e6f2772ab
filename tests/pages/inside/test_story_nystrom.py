"""Nyström's story: landmarks, an inverse that is better when it is not exact, and softmax from its own columns."""

from dataclasses import replace

import numpy as np
import pytest
from driver import curves, open_page, spoken
from stories import source

import attention_core as ac
from attention_core.experiments import cur_error
from attention_core.looks import cur
from attention_core.writing import percent
from pages.inside.stories.nystrom import formula_sentence, own_errors

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
    looked = cur.look(source().load(), ac.get("nystrom", landmarks=6), 1, pick)
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


LOOKED = cur.look(source().load(), ac.get("nystrom", landmarks=6), 1, "even")


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
