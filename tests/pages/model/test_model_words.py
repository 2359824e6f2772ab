"""Tests of the Model page's sentences, on each side of each branch."""

import dataclasses
import math

import pytest

from attention_core.experiments.embedding import EmbeddingRow
from attention_core.experiments.swap import CopyRow, ReadingRow
from pages.model import budget, encoder, layer_map, layers, predicts, words
from pages.model.options import called, layers_in_words, tokens_in_words
from pages.model.predicts import Point
from pages.model.sweep import Both
from pages.model.words import Score

AS_IT_IS = Score(name="As it is", perplexity=20.0, copied=1.0, first=11.0)


def of(perplexity, copied):
    return words.verdict(AS_IT_IS, Score(name="X", perplexity=perplexity, copied=copied, first=11.0))


@pytest.mark.parametrize(
    ("perplexity", "told"),
    [
        (20.9, "perplexity stays within 5%: from 20 to 20.9."),
        (21.1, "perplexity rises from 20 to 21.1, 1.1× the original."),
        (29.8, "perplexity rises from 20 to 29.8, 1.5× the original."),
        (19.1, "perplexity stays within 5%: from 20 to 19.1."),
        (19.0, "perplexity falls from 20 to 19, 0.95× the original."),
        (10.0, "perplexity falls from 20 to 10, 0.50× the original."),
    ],
)
def test_how_the_text_is_read(perplexity, told):
    assert told in of(perplexity, 1.0)


@pytest.mark.parametrize(
    ("copied", "told"),
    [(2.9, "Copying is kept"), (3.1, "Copying gets worse"), (8.9, "Copying gets worse"), (9.1, "Copying is lost")],
)
def test_what_becomes_of_copying(copied, told):
    assert told in of(20.0, copied)


def test_a_pattern_that_covers_the_whole_text_cannot_change_its_perplexity():
    rows = [read(20.0), read(20.0, layers=(0,)), dataclasses.replace(COPY, word="w", layers=(0,))]
    for tokens, window, covered in ((63, 62, True), (63, 61, False), (1, 1, True)):
        word = f"local~window~{window}"
        own = [dataclasses.replace(row, word=word) for row in rows[1:]]
        own[0] = dataclasses.replace(own[0], tokens=tokens)
        found = words.score("X", word, (0,), own)
        assert found.covered == (tokens if covered else 0)
        assert ("like softmax, so perplexity stays" in words.verdict(AS_IT_IS, found)) == covered
    assert not words.attends_to_all("linear", 63), "its weights differ from softmax's although it attends to all"
    assert not words.attends_to_all("uniform", 63)


def test_windows_are_compared_by_the_keys_that_a_token_attends_to():
    told = words.keys_of_last(["local~window~64", "sink~window~64", "linear", "uniform", "local~window~1"], 200)
    assert told == (
        "The last of 200 tokens attends to: 65 keys in Local · window 64, 68 keys in Attention sinks · window 64, "
        "2 keys in Local · window 1."
    )
    assert words.keys_of_last(["linear", "uniform"], 200) == ""


def test_a_line_over_a_budget_is_not_named_after_one_of_its_values():
    assert budget.swept("local~window~64") == "Local · window"
    assert budget.swept("sink~window~64~sinks~1") == "Attention sinks · window · sinks 1"


def test_neither_number_is_told_without_the_other():
    assert of(math.nan, 1.0) == of(20.0, math.nan) == ""
    lacking = Score(name="As it is", perplexity=20.0, copied=math.nan, first=math.nan)
    assert words.headline(lacking, [AS_IT_IS]) == ""


def test_a_model_that_gains_nothing_by_copying_loses_nothing():
    assert words.lost_share(Score(name="", perplexity=1, copied=5.0, first=5.0), AS_IT_IS) == 0.0


def read(value, layers=(), recorded=""):
    return ReadingRow(word="w", layers=layers, tokens=9, total=9, perplexity=value, seconds=1.0, recorded=recorded)


COPY = CopyRow(word="softmax", layers=(), seed=0, period=9, first=11.0, copied=1.0, seconds=1.0)


def test_where_numbers_come_from():
    assert words.origin([read(1)]).startswith("Live")
    assert words.origin([read(1, recorded="2026-01-01, a machine")]) == ("Recorded on 2026-01-01, a machine.")
    assert "1 of 2 results was computed here." in words.origin([read(1), read(1, recorded="then")])
    assert "2 of 3 results were computed here." in words.origin([read(1), read(1), read(1, recorded="then")])


@pytest.mark.parametrize(
    ("perplexity", "copied", "told"),
    [
        (20, 2, "at every number of layers tried perplexity stays below 1.5× what it was, and more than half"),
        (20, 7, "at every number of layers tried, and 4 is the first at which more than half of copying is gone."),
        (31, 2, "4 is the first number of layers tried at which perplexity is more than 1.5× what it was, and more"),
        (31, 7, "more than 1.5× what it was, 4 the first at which more than half of copying is gone."),
    ],
)
def test_how_many_layers_it_takes(perplexity, copied, told):
    pairs = [Both(x=2, perplexity=20.0, copied=1.0), Both(x=4, perplexity=perplexity, copied=copied)]
    assert told in layers.in_one_sentence({"linear": pairs}, [read(20), COPY], "bottom")
    assert layers.in_one_sentence({"linear": pairs}, [read(20)], "bottom") == ""


def test_which_layer_matters_alone():
    pairs = [Both(x=0, perplexity=25.0, copied=2.0), Both(x=7, perplexity=21.0, copied=6.0)]
    told = layers.in_one_sentence({"linear": pairs}, [read(20), COPY], "single")
    assert "alone, layer 0 matters most to the text, perplexity 20 → 25, and layer 7 to copying, 1 → 6" in told


def test_a_layer_map_is_coloured_by_how_much_is_lost():
    pairs = [Both(x=0, perplexity=20.0, copied=1.0), Both(x=2, perplexity=40.0, copied=6.0)]
    read_row = layer_map.of_reading("linear", pairs, read(20))
    copy_row = layer_map.of_copying("linear", pairs, COPY)
    assert (read_row.title, len(read_row.places)) == ("Linear", 30)
    assert read_row.places[[0, 2]].tolist() == [0, 1]  # twice the perplexity has the full colour
    assert copy_row.places[[0, 2]].tolist() == [0, 0.5]  # of 1 to 11 nats
    assert math.isnan(read_row.places[1])
    assert read_row.notes[2] == "Linear, layer 2: perplexity 40, 2× what it was"
    assert copy_row.notes[2] == "Linear, layer 2: copying 6 nats a token, 1 as it is"


@pytest.mark.parametrize(("perplexity", "copied", "reads", "copies"), [(20, 3, 1, 0), (30, 1, 0, 1), (20, 2, 1, 0)])
def test_who_is_better_than_what_looks_at_nothing(perplexity, copied, reads, copies):
    lines = {
        "linear": [Both(x=3, perplexity=perplexity, copied=copied), Both(x=4, perplexity=1.0, copied=None)],
        "uniform": [Both(x=3, perplexity=25.0, copied=2.0)],
        "synthesizer~kind~random": [Both(x=3, perplexity=26.0, copied=2.5), Both(x=4, perplexity=9.0, copied=2.5)],
    }
    told = layers.in_one_sentence(lines, [read(20), COPY], "single")
    assert (
        f"It reads better than what looks at nothing in {reads} of 1 layers, and copies better in {copies} of 1."
        in told
    )
    del lines["uniform"], lines["synthesizer~kind~random"]
    assert "looks at nothing" not in layers.in_one_sentence(lines, [read(20), COPY], "single")


def test_from_which_budget_on():
    pairs = [
        Both(x=x, perplexity=p, copied=c) for x, p, c in ((1, 99, 9), (2, 20, 9), (4, 22, 2), (8, 20, 2), (16, 20, 1))
    ]
    assert budget.least(pairs, "perplexity", 21) == 8
    assert budget.least(pairs, "copied", 3) == 4
    assert budget.least(pairs, "perplexity", 10) is None
    told = budget.in_one_sentence({"local~window~64": pairs}, [read(20), COPY])
    assert told == "**Local** reads as before from window 8 on. It copies from window 4 on."
    worse = [Both(x=1, perplexity=99.0, copied=9.0)]
    assert "reads worse at every window tried. It copies at none." in budget.in_one_sentence(
        {"local~window~64": worse}, [read(20), COPY]
    )


def test_the_running_mean_is_that_of_so_many():
    assert budget.running_mean([1, 2, 3, 6], 2) == [1.5, 2.5, 4.5]
    assert budget.running_mean([1], 2) == []


def cloud(copies):
    return [
        Point(word=f"local~window~{i + 1}", output=float(i), perplexity=float(i), copied=copy)
        for i, copy in enumerate(copies)
    ]


@pytest.mark.parametrize(
    ("copies", "told"),
    [
        ((0, 1, 2, 3, 4.0), "puts copying in order"),
        ((1, 0, 3, 2, 4.0), "puts copying roughly in order"),
        ((4, 3, 2, 1, 0.0), "does not predict copying"),
        ((1, 1, 1, 1, 1.0), "cannot be held against copying"),
    ],
)
def test_how_well_the_error_forecasts(copies, told):
    said = predicts.in_one_sentence(cloud(copies))
    assert told in said
    assert "puts perplexity in order" in said
    assert "Too few" in predicts.in_one_sentence(cloud((0, 1, 2, 3)))


def test_the_order_between_variants_is_counted_apart_from_the_order_within_one():
    two = [*cloud((0, 1, 2, 3, 4.0)), Point(word="linear", output=1.5, perplexity=0.5, copied=9.0)]
    said = predicts.in_one_sentence(two)
    assert (
        "Of the 5 pairs of points from different variants, 4 have the same order in the error and in perplexity" in said
    )
    assert "Of the 5 pairs of points from different variants, 2 have the same order in the error and in copying" in said
    assert "All points belong to one variant" in predicts.in_one_sentence(cloud((0, 1, 2, 3, 4.0)))


def test_names():
    assert called("uniform") == "Mean of v"
    assert called("sink~window~64~sinks~1") == "Attention sinks · window 64 · sinks 1"
    assert called("linear") == "Linear"
    assert layers_in_words(tuple(range(30))) == "all 30 layers"
    assert layers_in_words((7,)) == "layer 7"
    assert layers_in_words((3, 4)) == "layers 3 to 4"
    assert tokens_in_words(9, 9) == "9 tokens"
    assert tokens_in_words(9, 12) == "the first 9 of 12 tokens"


@pytest.mark.parametrize(
    ("tau", "told"),
    [
        (0.96, "The ranking of the sentences stays the same"),
        (0.94, "The ranking of the sentences stays similar"),
        (0.71, "The ranking of the sentences stays similar"),
        (0.69, "The ranking of the sentences changes"),
    ],
)
def test_what_becomes_of_a_ranking(tau, told):
    row = EmbeddingRow(word="linear", layers=(0,), before=(0.5, 0.4), after=(0.4, 0.5), drift=0.1234, tau=tau)
    said = encoder.in_words([row])
    assert "With **Linear** embeddings drift by 0.12." in said
    assert told in said


def test_ranks_begin_with_the_most_alike():
    assert encoder.ranks([0.1, 0.9, 0.5]).tolist() == [3, 1, 2]
