"""Tests of the Entropy page's distance view: with and without RoPE, its text, its curves, and its input."""

import contextlib
import io
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from driver import full_text, open_page, points, spoken

import attention_core as ac
from app.words.labels import every_key
from attention_core.experiments import distance
from attention_core.experiments.distance import BIASED, PLAIN, ROTATED
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource
from attention_core.inputs.positions import ALIBI, NONE, ROPE
from pages.entropy.distance import near_and_far_values, position_origin
from pages.entropy.distance_words import logits_by_form, size_and_bound, weights_by_form

SMALL = {"input": "synthetic", "n": 40, "d": 8, "heads": 3, "head": 1, "h_seeds": 1, "h_view": "distance"}
open_entropy = partial(open_page, "entropy", **SMALL)
SOURCE = SyntheticSource(SyntheticSpec(n=40, d=8, heads=3))


def rows(source=SOURCE, **how):
    return [row for task in distance.tasks(source, n=40, **how) for row in distance.run(task)]


def median(found, form, name, x):
    return np.median([getattr(row, name) for row in found if (row.form, row.distance) == (form, x)])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rope", [False, True])
def test_weights_equal_the_library_with_and_without_rope(causal, rope):
    at = open_entropy(causal=causal, rope=rope)
    drawn = points(at)
    found = rows(SyntheticSource(SyntheticSpec(n=40, d=8, heads=3, rope=rope)), causal=causal)
    for form, name in ((ROTATED, "with RoPE"), (PLAIN, "without RoPE")):
        assert set(drawn[name]) == set(distance.distances(40))
        for x in (0, 1, 17, 30):
            assert drawn[name][x] == pytest.approx(median(found, form, "weight", x))
    alike = np.mean([1 / (i + 1) for i in range(30, 40)]) if causal else 1 / 40
    assert drawn[f"equal weights on {every_key(causal=causal)}"][30] == pytest.approx(alike)
    assert ("RoPE with base 10,000 was applied to the original queries and keys" in spoken(at, "caption")) == rope
    assert ("The lab knows of no RoPE that was applied to the original" in spoken(at, "caption")) != rope


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("logit", {"with RoPE", "without RoPE"}),
        ("bound", {"with RoPE", "without RoPE", "upper bound, with RoPE"}),
        ("alone", {"upper bound of |logit|", "dot product (q = k)"}),
    ],
)
def test_each_measure_has_its_curves(word, names):
    at, found = open_entropy(h_distance=word), rows()
    drawn = points(at)
    assert set(drawn) == names
    if word == "logit":
        assert drawn["with RoPE"][17] == pytest.approx(median(found, ROTATED, "logit", 17))
    if word == "bound":
        assert drawn["with RoPE"][17] == pytest.approx(median(found, ROTATED, "size", 17))
        assert drawn["upper bound, with RoPE"][17] == pytest.approx(median(found, ROTATED, "bound", 17))
        assert all(drawn["with RoPE"][x] < drawn["upper bound, with RoPE"][x] for x in drawn["with RoPE"])
    if word == "alone":
        cosines = [np.cos(17 * 10_000 ** (-2 * i / 8)) for i in range(4)]
        assert drawn["dot product (q = k)"][17] == pytest.approx(np.mean(cosines))
        assert drawn["upper bound of |logit|"][0] == 1
        assert set(drawn["upper bound of |logit|"]) == set(range(31))


def test_the_view_of_rope_alone_names_no_head():
    assert "RoPE rotation · distances 0 to 30" in spoken(open_entropy(h_distance="alone"), "caption")
    assert "RoPE rotation" not in spoken(open_entropy(h_distance="bound"), "caption")


def test_the_effect_of_rope_alone_needs_two_distances():
    text = spoken(open_entropy(h_distance="alone", n=1))
    assert "This input is too short to compare distances. Use a longer input." in text
    assert "hardly changes" not in text


def test_the_sentence_has_the_numbers_of_the_library():
    assert "With equal weights, they would get 36%, because" in spoken(open_entropy(causal=True))
    text, found = spoken(open_entropy()), rows()
    assert "With equal weights" not in text

    def both(form, name):
        return near_and_far_values(found, form, name, 40)

    near, far = both(ROTATED, "weight")
    heads = [[row for row in found if (row.form, row.head) == (ROTATED, head)] for head in range(3)]
    own = [next(row.weight for row in head if row.distance == 1) for head in heads]
    away = [np.mean([row.weight for row in head if (row.distance or 0) > 20]) for head in heads]
    assert (near, far) == (pytest.approx(np.median(own)), pytest.approx(np.median(away)))
    plain = both(PLAIN, "weight")
    assert text.count(full_text(weights_by_form({ROTATED: (near, far), PLAIN: plain}, 40))) == 1
    logits = full_text(logits_by_form({form: both(form, "logit") for form in (ROTATED, PLAIN)}, 40))
    assert logits.replace("\N{NO-BREAK SPACE}", " ") in spoken(open_entropy(h_distance="logit"))
    sizes = full_text(size_and_bound(both(ROTATED, "size"), both(ROTATED, "bound"), 40, both(PLAIN, "size")[1]))
    assert sizes.replace("\N{NO-BREAK SPACE}", " ") in spoken(open_entropy(h_distance="bound"))
    nats = {
        form: np.median([row.entropy for row in found if row.form == form and row.entropy]) for form in (ROTATED, PLAIN)
    }
    assert list(open_entropy().dataframe[0].value["entropy H (nats)"]) == [
        f"{nats[form]:.2f}" for form in (ROTATED, PLAIN)
    ]
    assert open_entropy(h_unit="bits").dataframe[0].value["entropy H (bits)"][0] == f"{nats[ROTATED] / np.log(2):.2f}"


@pytest.mark.parametrize("positions", [NONE, ROPE])
def test_both_forms_are_shown_for_every_choice(positions):
    at = open_entropy(positions=positions)
    drawn = points(at)
    assert set(drawn) == {"with RoPE", "without RoPE", "equal weights on all keys"}
    for form, name in ((ROTATED, "with RoPE"), (PLAIN, "without RoPE")):
        assert drawn[name][17] == pytest.approx(median(rows(), form, "weight", 17), rel=1e-4)
    assert "The lab knows of no RoPE that was applied to the original queries and keys" in spoken(at, "caption")


def test_alibi_is_a_third_form_if_chosen():
    at = open_entropy(positions=ALIBI, causal=True)
    drawn, own = points(at), rows(causal=True)
    found = rows(replace(SOURCE, positions=ALIBI), causal=True)
    for form, name in ((ROTATED, "with RoPE"), (PLAIN, "without RoPE")):
        assert drawn[name][17] == pytest.approx(median(own, form, "weight", 17), rel=1e-4)
    assert drawn["with ALiBi"][17] == pytest.approx(median(found, BIASED, "weight", 17))
    q, k, _v = SOURCE.load().tensors
    weights = [
        ac.get("alibi", slope=2 ** (-8 * (head + 1) / 3)).weights(q[head], k[head], causal=True) for head in range(3)
    ]
    for head, matrix in enumerate(weights):
        [weight] = [row.weight for row in found if (row.form, row.head, row.distance) == (BIASED, head, 17)]
        assert weight == pytest.approx(float(matrix.diagonal(-17).mean()), rel=1e-4)
        [nats] = [row.entropy for row in found if (row.form, row.head, row.distance) == (BIASED, head, None)]
        assert nats == pytest.approx(float(ac.metrics.entropy(matrix).mean()), rel=1e-4)
    text = spoken(at, "caption")
    assert "With ALiBi, they get" in text
    assert list(at.dataframe[0].value["position encoding"]) == ["with RoPE", "without RoPE", "with ALiBi"]
    assert "The option “ALiBi” is selected, so this input uses ALiBi instead of RoPE." in text
    alone = points(open_entropy(positions=ALIBI, causal=True, h_distance="alone"))
    assert alone == points(open_entropy(causal=True, h_distance="alone"))  # RoPE rotates q and k before ALiBi is added


def test_only_the_selected_head_is_drawn():
    drawn = points(open_entropy(h_heads="one", head=2))
    [weight] = [row.weight for row in rows() if (row.form, row.head, row.distance) == (ROTATED, 2, 9)]
    assert drawn["with RoPE"][9] == pytest.approx(weight)


@pytest.mark.parametrize(
    ("turned", "words"),
    [
        (0.94, "makes attention more local here.**"),
        (0.96, "hardly changes"),
        (1.0, "hardly changes"),
        (1.04, "hardly changes"),
        (1.06, "makes attention less local here.**"),
    ],
)
def test_rope_is_judged_by_the_weight_of_distant_keys(turned, words):
    assert full_text(weights_by_form({ROTATED: (1.0, turned), PLAIN: (1.0, 1.0)}, 40)).startswith(f"**RoPE {words} ")
    model = full_text(weights_by_form({ROTATED: (1.0, turned), PLAIN: (1.0, 1.0)}, 40, "MiniLM-L6"))
    words = words.replace("makes attention", "makes its attention")
    assert model.startswith(f"**Adding RoPE to MiniLM-L6 {words}")


@pytest.mark.parametrize("n", [1, 2])
def test_few_tokens_show_instructions(n):
    at = open_entropy(n=n)
    assert "This input is too short to compare distances. Use a longer input." in spoken(at, "caption")
    assert "nan" not in spoken(at, "caption")


@pytest.mark.parametrize("measure", ["weight", "logit", "bound"])
@pytest.mark.parametrize(("n", "is_short"), [(15, True), (16, False)])
def test_too_few_distances_are_not_compared(n, is_short, measure):
    text = spoken(open_entropy(n=n, h_distance=measure))
    assert ("This input is too short to compare distances. Use a longer input." in text) == is_short


def test_constant_attention_has_no_size_to_bound():
    at = open_entropy(sharpness=0.0)
    assert "RoPE also sets an upper bound for |logit|" not in spoken(open_entropy(sharpness=0.0, h_distance="bound"))
    assert "RoPE hardly changes the locality of attention here." in spoken(at, "caption")


def test_the_origin_of_each_form_is_explained(monkeypatch):
    assert "RoPE with base 100,000 was applied" in position_origin(TextSource("a", "smollm2", 0))
    for source in (TextSource("a", "minilm", 0), UploadSource.of("a.npz", b"")):
        assert "The lab knows of no RoPE that was applied" in position_origin(source)
    known = ac.inputs.models.load("smollm2")
    unknown = replace(known, info=replace(known.info, rotary_base=None))
    monkeypatch.setattr(ac.inputs.models, "load", lambda name: unknown)
    assert "The rotation angles are not known, so RoPE cannot be removed" in position_origin(
        TextSource("a", "smollm2", 0)
    )


def test_a_model_with_rope_is_shown_with_and_without_it():
    text = {"input": "text", "text": "the cat saw the dog and the dog saw the cat", "model": "smollm2", "layer": 2}
    at = open_entropy(**text, causal=True, head=0)
    assert {"with RoPE", "without RoPE"} <= set(points(at))
    assert "RoPE with base 100,000 was applied" in spoken(at, "caption")


def test_the_python_to_take_away_makes_the_same_numbers():
    at = open_entropy()
    [code] = [c.value for c in at.code if "rows = [" in c.value]
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, space)
    assert space["rows"] == rows()


def test_a_link_that_does_not_fit_falls_back_and_is_named():
    at = open_page("entropy", {"h_view": "distance", "h_distance": "far", "input": "synthetic", "n": "20"})
    assert at.session_state["h_distance"] == "weight"
    assert any("h_distance" in w.value.replace("\\", "") for w in at.warning)
    at = at.button_group(key="h_distance").set_value("bound").run()
    assert at.query_params["h_distance"] == "bound"
