"""Tests of the Model page's sentences, on each side of each branch."""

import dataclasses
import math
from types import SimpleNamespace

import pytest

from attention_core.experiments.embedding import EmbeddingRow
from attention_core.experiments.swap import CopyRow, ReadingRow, derived
from attention_core.experiments.swap.derived import Both, ErrorPoint, Score
from pages.model import budget, encoder, glance, layers, predicts, reading, words
from pages.model.options import called, layers_in_words, tokens_in_words

AS_IT_IS = Score(name="As it is", perplexity=20.0, copied=1.0, first=11.0)


def of(perplexity, copied):
    return words.verdict(AS_IT_IS, Score(name="X", perplexity=perplexity, copied=copied, first=11.0))


@pytest.mark.parametrize(
    ("perplexity", "told"),
    [
        (20.0, "**X**: perplexity changes by at most 5%, and copying"),
        (20.9, "**X**: perplexity changes by at most 5%, and copying"),
        (21.1, "**X**: perplexity rises, and copying"),
        (29.8, "**X**: perplexity rises, and copying"),
        (19.1, "**X**: perplexity changes by at most 5%, and copying"),
        (19.0, "**X**: perplexity falls, and copying"),
        (10.0, "**X**: perplexity falls, and copying"),
    ],
)
def test_how_the_text_is_read(perplexity, told):
    assert told in of(perplexity, 1.0)


@pytest.mark.parametrize(
    ("copied", "told"),
    [
        (1.0, "copying is preserved"),
        (2.9, "copying is preserved"),
        (3.1, "copying gets worse"),
        (8.9, "copying gets worse"),
        (9.1, "copying fails"),
    ],
)
def test_what_becomes_of_copying(copied, told):
    assert told in of(20.0, copied)
    loss = f"The mean loss is {copied:g} nats per token, compared with 1 in the original model."
    changed = Score(name="X", perplexity=9.0, copied=copied, first=11.0)
    assert words.copying(AS_IT_IS, changed) == f"**X**: {told}. {loss}"


def test_a_pattern_that_covers_the_whole_text_cannot_change_its_perplexity():
    rows = [read(20.0), read(20.0, layers=(0,)), dataclasses.replace(COPY, word="w", layers=(0,))]
    for tokens, window, covered in ((63, 62, True), (63, 61, False), (1, 1, True)):
        word = f"local~window~{window}"
        own = [dataclasses.replace(row, word=word) for row in rows[1:]]
        own[0] = dataclasses.replace(own[0], tokens=tokens)
        found = derived.score("X", word, (0,), own)
        assert found.covered == (tokens if covered else 0)
        assert ("because this variant attends to" in words.verdict(AS_IT_IS, found)) == covered
    assert not derived.attends_to_all("linear", 63), "its weights differ from softmax's although it attends to all"
    assert not derived.attends_to_all("uniform", 63)


def test_windows_are_compared_by_the_keys_that_a_token_attends_to():
    told = words.keys_in_words(["local~window~64", "sink~window~64", "linear", "uniform", "local~window~1"], 200)
    assert told == (
        "The last of 200 tokens attends to 65 keys with Local · window 64, 68 keys with Attention sinks · window 64, "
        "2 keys with Local · window 1."
    )
    assert words.keys_in_words(["linear", "uniform"], 200) == ""


def test_a_line_over_a_budget_is_not_named_after_one_of_its_values():
    assert budget.swept("local~window~64") == "Local · window"
    assert budget.swept("sink~window~64~sinks~1") == "Attention sinks · window · sinks 1"


def test_neither_number_is_told_without_the_other():
    question = SimpleNamespace(words=["linear"], layers=(0,))
    assert reading.outcome(question, [], words.verdict) == "Reading the text …"
    rows = [dataclasses.replace(read(20.0), word="softmax"), COPY]
    rows.append(dataclasses.replace(read(20.0, layers=(0,)), word="linear"))
    assert reading.outcome(question, rows, words.verdict) == "Reading the text …"
    rows.append(dataclasses.replace(COPY, word="linear", layers=(0,)))
    assert reading.outcome(question, rows, words.verdict).endswith(", and copying is preserved.")


def test_a_model_that_gains_nothing_by_copying_loses_nothing():
    assert derived.lost_share(Score(name="", perplexity=1, copied=5.0, first=5.0), AS_IT_IS) == 0.0


def read(value, layers=(), recorded=""):
    return ReadingRow(word="w", layers=layers, tokens=9, total=9, perplexity=value, seconds=1.0, recorded=recorded)


COPY = CopyRow(word="softmax", layers=(), seed=0, period=9, first=11.0, copied=1.0, seconds=1.0)


def test_where_numbers_come_from():
    assert words.origin([read(1)]) == "Computed on this machine."
    assert words.origin([read(1, recorded="2026-01-01, a machine")]) == ("Recorded on 2026-01-01, a machine.")
    assert "1 of 2 results was computed on this machine." in words.origin([read(1), read(1, recorded="then")])
    assert "2 of 3 results were computed on this machine." in words.origin([read(1), read(1), read(1, recorded="then")])


STAYS = "is at most 1.5× that of the original model for every tested number of replaced layers."
EXCEEDS = "exceeds 1.5× that of the original model once 4 layers are replaced."
REMAINS = "At least half of the ability to copy remains for every tested number of replaced layers."
LOST = "More than half of the ability to copy is lost once 4 layers are replaced."


@pytest.mark.parametrize(
    ("perplexity", "copied", "reads", "copies"),
    [(30, 6, STAYS, REMAINS), (20, 7, STAYS, LOST), (31, 2, EXCEEDS, REMAINS), (31, 7, EXCEEDS, LOST)],
)
def test_how_many_layers_it_takes(perplexity, copied, reads, copies):
    pairs = [Both(x=2, perplexity=20.0, copied=1.0), Both(x=4, perplexity=perplexity, copied=copied)]
    assert f"**Linear**: perplexity {reads} {copies}" == layers.in_words({"linear": pairs}, [read(20), COPY], "bottom")
    assert layers.in_words({"linear": pairs}, [read(20)], "bottom") == ""


def test_which_layer_matters_alone():
    pairs = [Both(x=0, perplexity=25.0, copied=2.0), Both(x=7, perplexity=21.0, copied=6.0)]
    told = layers.in_words({"linear": pairs}, [read(20), COPY], "single")
    assert told == (
        "**Linear**: perplexity is highest if layer 0 is replaced (25, compared with 20 in the original model). "
        "The copying loss is highest if layer 7 is replaced (6 nats per token, compared with 1)."
    )


def test_a_layer_map_is_coloured_by_how_much_is_lost():
    pairs = [Both(x=0, perplexity=20.0, copied=1.0), Both(x=2, perplexity=40.0, copied=6.0)]
    read_row = layers.of_reading("linear", pairs, read(20))
    copy_row = layers.of_copying("linear", pairs, COPY)
    assert (read_row.title, len(read_row.places)) == ("Linear", 30)
    assert read_row.places[[0, 2]].tolist() == [0, 1]  # twice the perplexity has the full colour
    assert copy_row.places[[0, 2]].tolist() == [0, 0.5]  # of 1 to 11 nats
    assert math.isnan(read_row.places[1])
    assert read_row.notes[2] == "Linear, layer 2: perplexity 40, 2× that of the original model"
    assert copy_row.notes[2] == "Linear, layer 2: copying loss 6 nats per token, 1 in the original model"


@pytest.mark.parametrize(("perplexity", "copied", "reads", "copies"), [(20, 3, 1, 0), (30, 1, 0, 1), (20, 2, 1, 0)])
def test_who_is_better_than_what_looks_at_nothing(perplexity, copied, reads, copies):
    lines = {
        "linear": [Both(x=3, perplexity=perplexity, copied=copied), Both(x=4, perplexity=1.0, copied=None)],
        "uniform": [Both(x=3, perplexity=25.0, copied=2.0)],
        "synthesizer~kind~random": [Both(x=3, perplexity=26.0, copied=2.5), Both(x=4, perplexity=9.0, copied=2.5)],
    }
    told = layers.in_words(lines, [read(20), COPY], "single")
    assert told.endswith(
        f"In {reads} of 1 layers, its perplexity is lower than that of the baselines. In {copies} of 1 layers, its "
        "copying loss is lower."
    )
    del lines["uniform"], lines["synthesizer~kind~random"]
    assert "baselines" not in layers.in_words(lines, [read(20), COPY], "single")


def test_from_which_budget_on():
    pairs = [
        Both(x=x, perplexity=p, copied=c) for x, p, c in ((1, 99, 9), (2, 20, 9), (4, 22, 2), (8, 20, 2), (16, 20, 1))
    ]
    assert derived.preserved_from(pairs, "perplexity", 21) == 8
    assert derived.preserved_from(pairs, "copied", 3) == 4
    assert derived.preserved_from(pairs, "perplexity", 10) is None
    told = budget.in_words({"local~window~64": pairs}, [read(20), COPY])
    assert told == "**Local**: perplexity is preserved for window ≥ 8. Copying is preserved for window ≥ 4."


@pytest.mark.parametrize(
    ("perplexity", "copied", "told"),
    [
        (99.0, 9.0, "no tested value of window preserves the perplexity. No tested value of window preserves copying."),
        (99.0, 1.0, "no tested value of window preserves the perplexity. Copying is preserved for window ≥ 2."),
        (20.0, 9.0, "perplexity is preserved for window ≥ 2. No tested value of window preserves copying."),
        (20.0, 1.0, "perplexity is preserved for window ≥ 2. Copying is preserved for window ≥ 2."),
    ],
)
def test_what_a_budget_preserves(perplexity, copied, told):
    pairs = [Both(x=2, perplexity=perplexity, copied=copied)]
    assert budget.in_words({"local~window~64": pairs}, [read(20), COPY]) == f"**Local**: {told}"
    assert budget.in_words({"local~window~64": pairs}, [read(20)]) == ""


def test_the_running_mean_is_that_of_so_many():
    assert derived.running_mean([1, 2, 3, 6], 2) == [1.5, 2.5, 4.5]
    assert derived.running_mean([1], 2) == []


def cloud(copies):
    return [
        ErrorPoint(word=f"local~window~{i + 1}", output=float(i), perplexity=float(i), copied=copy)
        for i, copy in enumerate(copies)
    ]


@pytest.mark.parametrize(
    ("copies", "told"),
    [
        ((0, 1, 2, 3, 4.0), "predicts the **copying** ranking (rank correlation 1.0 over 5 points). All points"),
        (
            (1, 0, 3, 2, 4.0),
            "roughly predicts the **copying** ranking (rank correlation 0.80 over 5 points). The largest",
        ),
        ((4, 3, 2, 1, 0.0), "does not predict the **copying** ranking"),
        ((1, 1, 1, 1, 1.0), "The rankings by output error and by copying cannot be compared"),
    ],
)
def test_how_well_the_error_forecasts(copies, told):
    said = predicts.in_words(cloud(copies))
    assert told in said
    assert "Output error predicts the **perplexity** ranking" in said
    assert predicts.in_words(cloud((0, 1, 2, 3))) == "At least 5 points are needed to compare the rankings."


def test_the_order_between_variants_is_counted_apart_from_the_order_within_one():
    two = [*cloud((0, 1, 2, 3, 4.0)), ErrorPoint(word="linear", output=1.5, perplexity=0.5, copied=9.0)]
    said = predicts.in_words(two)
    reads, copies = said.split("  \n")
    assert reads.endswith("Output error puts 4 of 5 pairs of points from different variants in the correct order.")
    assert copies.endswith("Output error puts 2 of 5 pairs of points from different variants in the correct order.")
    assert "All points belong to one variant" in predicts.in_words(cloud((0, 1, 2, 3, 4.0)))


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
        (0.96, "The ranking of the sentences changes little or not at all (Kendall's τ = 0.96)."),
        (0.94, "The ranking of the sentences stays similar (Kendall's τ = 0.94)."),
        (0.71, "The ranking of the sentences stays similar (Kendall's τ = 0.71)."),
        (0.69, "The ranking of the sentences changes (Kendall's τ = 0.69)."),
    ],
)
def test_what_becomes_of_a_ranking(tau, told):
    row = EmbeddingRow(word="linear", layers=(0,), before=(0.5, 0.4), after=(0.4, 0.5), drift=0.1234, tau=tau)
    said = encoder.in_words([row])
    assert "With **Linear**, the mean drift of the embeddings is 0.12." in said
    assert told in said


def test_ranks_begin_with_the_most_alike():
    assert encoder.ranks([0.1, 0.9, 0.5]).tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("chance", "told"),
    [(0.14, "14%"), (0.0014, "0.14%"), (9.3e-6, "0.0009%"), (1e-6, "0.0001%"), (9e-7, "under 0.0001%")],
)
def test_a_probability_has_no_power_of_ten(chance, told):
    assert glance.probability(chance) == told
