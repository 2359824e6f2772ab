"""Tests of the Inside page: the choice of variant, its steps, and its downloads."""

import io
import re

import pytest
from driver import go, open_page, set_state, spoken, visit

import attention_core as ac
from app.words.i18n import escape_markdown
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec
from pages.home import gallery
from pages.inside.steps import LINK_NUMBERS, link_numbers, no_mask_reason
from pages.inside.stories import discover

SMALL = {"input": ["synthetic"], "n": ["11"], "d": ["8"], "heads": ["2"]}


def open_inside(**query):
    return open_page("inside", SMALL | query)


def captions(at):
    return spoken(at, "caption", "html")


def steps(at):
    return at.segmented_control(key="step").options


def sizes(at):
    """Return the tooltip with the sizes of the arrays of the current step."""
    [words] = [formula.help for formula in at.main.latex if formula.help.startswith("Sizes")]
    return words


def test_a_first_visit_shows_a_head_in_which_the_inverse_matrix_lowers_the_error():
    assert "In this head, Z makes the matrix error smaller" in spoken(visit("inside"))


def test_every_step_has_its_own_formula():
    at = open_inside(inside=["nystrom"])
    formulas = set()
    for number in link_numbers("nystrom", len(steps(at))):
        at = at.segmented_control(key="step").set_value(number).run()
        assert at.session_state["step"] == number
        formulas.add(at.main.latex[0].value)
    assert len(formulas) == len(steps(at))


def test_the_first_step_has_the_summary_at_the_top_and_each_later_step_its_finding():
    first = open_inside(inside=["landmark"], step=["1"])
    values = [m.value for m in first.markdown]
    assert f"**{ac.variant('landmark').summary}**" in values
    assert "of softmax's multiply-adds" not in spoken(first)
    second = open_inside(inside=["landmark"], step=["2"])
    assert any(
        re.fullmatch(r"\*\*On average, a row spreads its weight over [^*]*\*\*", m.value) for m in second.markdown
    )
    assert spoken(second).count("a row spreads its weight over") == 1
    last = open_inside(inside=["landmark"], step=["4"])
    assert any(m.value.startswith("**The matrix error relative to softmax's matrix is ") for m in last.markdown)
    assert spoken(last).count("of softmax's multiply-adds") == 1


def test_another_variant_opens_its_first_step():
    at = open_inside(inside=["nystrom"], step=["3"])
    at = at.selectbox(key="inside.variant").set_value("linear").run()
    assert at.session_state["inside"].key == "linear"
    assert at.session_state["step"] == link_numbers("linear", 1)[0]
    assert steps(at)[0] == "1 · Sum first"
    assert at.query_params["inside"] == "linear"


def test_a_link_opens_the_variant_with_its_settings_at_its_step():
    at = open_inside(inside=["nystrom~landmarks~4~method~kmeans"], step=["2"])
    assert at.select_slider(key="inside.knob.nystrom.landmarks").value == 4
    assert r"L = \operatorname{softmax}(Q \tilde K^\top / \sqrt d)$: 11 × 4" in sizes(at)
    assert at.query_params["step"] == "2"


def test_settings_change_only_the_shown_variant():
    at = open_inside(inside=["nystrom~landmarks~4"], variants=["softmax", "nystrom"])
    at = at.select_slider(key="inside.knob.nystrom.landmarks").set_value(8).run()
    assert at.query_params["inside"] == "nystrom~landmarks~8"
    assert r"$\tilde Q$: 8 × 8" in sizes(at)
    assert [a.word for a in at.session_state["variants"]] == ["softmax", "nystrom"]


@pytest.mark.parametrize(
    ("name", "word", "words"),
    [
        ("inside", "softmax", "Softmax cannot be shown here, so the page shows Nyström."),
        ("inside", "nystrom~landmarks~x", "`inside`"),
        ("step", "99", "`step`"),
    ],
)
def test_an_invalid_link_is_reported_and_the_default_shown(name, word, words):
    at = open_inside(**{name: [word]})
    assert any(words in w.value for w in at.warning)
    assert at.session_state["inside"].key == "nystrom"


FORMER = {
    "efficient": {1: "Feature maps", 2: "Feature weights", 4: "Comparison"},
    "emanet": {1: "Bases", 5: "Queries on bases", 6: "Comparison"},
    "entmax": {1: "Logits", 2: "Thresholds", 4: "Comparison"},
    "funnel": {1: "Pooled queries", 2: "Shared rows", 5: "Comparison"},
    "gla": {1: "Gates", 3: "Decayed products", 4: "Comparison"},
    "landmark": {1: "Left factor", 2: "Right factor", 4: "Comparison"},
    "linear": {1: "Feature map", 2: "Features", 3: "Kernel", 4: "Sum first", 5: "Normaliser", 6: "Comparison"},
    "mla": {1: "Singular values", 2: "Rank", 3: "Cache", 4: "Comparison"},
    "nsa": {1: "Block means", 2: "Compressed branch", 3: "Comparison"},
    "nystrom": {1: "Landmarks", 2: "Three factors", 3: "The inverse", 5: "Comparison"},
    "path": {1: "Directions", 2: "Corrections", 3: "Without projections", 4: "Comparison"},
    "performer": {1: "Directions", 2: "Features", 3: "Estimate", 4: "Number of features", 5: "Comparison"},
    "power_bert": {1: "Attention received", 5: "Comparison"},
    "pyramid": {1: "Pools", 2: "Weights on pools", 5: "Comparison"},
    "reformer": {1: "Hash", 2: "Sort", 3: "Chunks", 5: "Missed pairs", 7: "Comparison"},
    "relu2": {1: "Logits", 2: "Squares", 3: "Row sums", 8: "Comparison"},
    "scalar_decay": {1: "Gates", 3: "Decayed products", 4: "Comparison"},
    "softmax_gdn": {1: "Write strength", 2: "Comparison"},
}
"""The titles of steps by their number in links, for the stories whose steps have changed."""
GONE = [
    *(("emanet", 2), ("emanet", 3), ("emanet", 4), ("reformer", 4), ("reformer", 6)),
    *(("nystrom", 4), ("efficient", 3), ("funnel", 8)),
    *(("relu2", number) for number in (4, 5, 6, 7)),
]


@pytest.mark.parametrize("key", FORMER)
def test_an_old_link_still_opens_the_same_step(key):
    assert set(FORMER) == set(LINK_NUMBERS)
    for number, title in FORMER[key].items():
        at = open_inside(inside=[key], step=[str(number)])
        names = steps(at)
        assert names[link_numbers(key, len(names)).index(at.session_state["step"])].endswith(f" · {title}")
        assert "does not exist" not in captions(at)


@pytest.mark.parametrize(("key", "number"), GONE)
def test_a_link_to_a_removed_step_opens_another_with_a_notice(key, number):
    at = open_inside(inside=[key], step=[str(number)])
    assert (at.session_state["step"], list(at.warning)) == (1, [])
    assert "This link refers to a step that does not exist. Another step is shown." in captions(at)


@pytest.mark.parametrize("key", discover())
def test_step_numbers_are_unique_and_include_1(key):
    at = open_inside(inside=[key])
    assert at.session_state["step"] == 1, "an address without a step opens the step that it always opened"
    numbers = link_numbers(key, len(steps(at)))
    assert 1 in numbers
    assert len(set(numbers)) == len(steps(at))


@pytest.mark.parametrize("key", ["nystrom", "linear", "deltanet"])
def test_step_0_is_the_first_tab_until_another_is_chosen(key):
    at = open_inside(inside=[key], step=["0"])
    numbers = link_numbers(key, len(steps(at)))
    first = at.main.latex[0].value
    assert open_inside(inside=[key], step=[str(numbers[0])]).main.latex[0].value == first
    at = at.segmented_control(key="step").set_value(numbers[1]).run()
    assert (at.session_state["step"], at.main.latex[0].value == first) == (numbers[1], False)
    at = at.segmented_control(key="step").set_value(numbers[0]).run()
    assert (at.session_state["step"], at.main.latex[0].value == first) == (numbers[0], True)


def test_an_empty_address_opens_the_factors_of_nystrom():
    at = visit("inside")
    assert at.segmented_control(key="step").options[0] == "1 · Three factors"
    assert "$: 106 × 32" in sizes(at)


PLAIN = {"input": ["synthetic"], "n": ["12"], "heads": ["1"]}
"""Query of a short input, which a page computes fast."""


def test_the_page_opens_with_the_settings_that_the_visitor_has_chosen_on_other_pages():
    at = visit("matrices", PLAIN | {"variants": ["softmax", "nystrom~landmarks~6", "performer~features~8"]})
    for landmarks in (6, 9):
        chosen = (ac.get("softmax"), ac.get("nystrom", landmarks=landmarks), ac.get("performer", features=8))
        at = go(set_state(at, variants=chosen), "inside")
        assert at.session_state["inside"].word == f"nystrom~landmarks~{landmarks}"
        assert at.query_params["inside"] == f"nystrom~landmarks~{landmarks}"
        at = go(at, "matrices")
    at = go(at, "inside")
    at.selectbox(key="inside.variant").set_value("performer").run()
    assert at.session_state["inside"].word == "performer~features~8"


def test_a_link_without_a_variant_and_an_unchanged_session_open_the_default_settings():
    linked = visit("inside", PLAIN | {"variants": ["softmax", "nystrom~landmarks~6"]})
    assert linked.session_state["inside"].word == "nystrom"
    assert go(visit("matrices"), "inside").session_state["inside"].word == "nystrom"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("nystrom", "How does Nyström attention work?"),
        ("pooled", "How does the Pooled keys variant work?"),
        ("mla", "How does Latent attention work?"),
    ],
)
def test_the_question_names_the_variant(key, words):
    assert f"# {words}" in [m.value for m in open_inside(inside=[key]).markdown]


def test_the_average_of_heads_shows_the_first_head():
    average, first = (open_inside(inside=["nystrom~landmarks~3"], step=["5"], head=[head]) for head in ("-1", "0"))
    assert "Showing head 0" in captions(average)
    assert "Showing head 0" not in captions(first)
    sentence = [
        [m.value for m in at.main.markdown if "The matrix error relative to softmax's matrix is " in m.value]
        for at in (average, first)
    ]
    assert sentence[0] == sentence[1] != []


@pytest.mark.parametrize("key", ["nystrom", "linear", "performer"])
def test_every_source_of_a_variant_is_linked(key):
    [line] = [m.value for m in open_inside(inside=[key]).main.markdown if m.value.startswith("Source: ")]
    variant = ac.get(key).variant
    assert line.index(variant.source.url) < line.index("See also") < line.index(variant.further[0].url)
    assert all(
        f"[{escape_markdown(paper.heading)} ({paper.year})]({paper.url})" in line
        for paper in (variant.source, *variant.further)
    )


def test_a_variant_with_one_source_has_no_more():
    assert ac.get("efficient").variant.further == ()
    [line] = [m.value for m in open_inside(inside=["efficient"]).main.markdown if m.value.startswith("Source: ")]
    assert "See also" not in line


def test_the_files_contain_the_shown_numbers():
    at = open_inside(inside=["nystrom~landmarks~4~inverse~exact"], head=["1"])
    code = next(c.value for c in at.main.code if "analysis.matrix.inside" in c.value)
    assert "landmarks=4" in code
    assert "head=1" in code
    record = SyntheticSource(SyntheticSpec(n=11, d=8, heads=2)).load()
    qkv = ac.inputs.from_upload(ac.inputs.to_npz(record), "qkv.npz")
    printed = io.StringIO()
    exec(  # the snippet, with the record in place of the file
        code.replace('ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")', "qkv").replace(
            "qkv = qkv\n", ""
        ),
        {"qkv": qkv, "print": lambda *words: print(*words, file=printed)},
    )
    assert "left (11, 4)" in printed.getvalue()


def test_a_variant_that_cannot_be_causal_is_explained():
    attention = ac.get("nystrom")
    sentence = no_mask_reason(attention, None, 0)
    assert (
        sentence
        == f"Nyström cannot be causal: {attention.variant.causal_reason} The page shows Nyström without the mask."
    )
    assert no_mask_reason(attention, 0.256, 5) == (
        f"{sentence} The model masks later tokens. Without the mask, 26% of the softmax weight in head 5 "
        "falls on later tokens."
    )


@pytest.mark.parametrize(("model", "hides"), [("smollm2", True), ("minilm", False)])
def test_the_weight_on_tokens_that_a_model_masks_is_reported(model, hides):
    at = open_page("inside", {"text": "@english", "model": model, "layer": "1", "head": "0", "causal": "1"})
    assert ("The model masks later tokens. Without" in captions(at)) == hides


def test_the_query_menu_starts_at_the_last_word():
    for key in ("linear", "pooled"):
        at = open_page("inside", {"text": ["@english"], "inside": [key]})
        picked = []
        for number in link_numbers(key, len(steps(at))):
            at = at.segmented_control(key="step").set_value(number).run()
            picked += [int(box.value) for box in at.selectbox if (box.key or "").endswith(".query")]
        record = ac.inputs.from_text(at.session_state["text"], model="minilm", layer=0)
        assert picked, "some step has a query picker"
        assert not any(record.special[value] for value in picked)
        assert all(map(str.isalnum, (record.tokens[value] for value in picked if key == "linear")))


@pytest.mark.parametrize(
    ("key", "causal"), [("path", True), ("deltanet", True), ("mesa", True), ("gla", True), ("linformer", False)]
)
def test_recurrent_variants_are_shown_with_the_causal_mask(key, causal):
    at = open_inside(inside=["nystrom"])
    assert at.session_state["causal"] is False
    at = at.selectbox(key="inside.variant").set_value(key).run()
    assert at.session_state["inside"].key == key
    assert at.session_state["causal"] is causal
    assert at.selectbox(key="inside.variant").set_value("performer").run().session_state["causal"] is False


def test_a_causal_mask_that_the_visitor_chose_stays_on_after_a_recurrent_variant():
    at = open_inside(inside=["nystrom"], causal="1")
    at = at.selectbox(key="inside.variant").set_value("gla").run()
    assert at.selectbox(key="inside.variant").set_value("performer").run().session_state["causal"] is True


@pytest.mark.parametrize(("key", "words"), [("path", "causal=1"), ("linformer", "")])
def test_gallery_links_to_recurrent_variants_are_causal(key, words):
    row = gallery.row(ac.variant(key), {}, dark=False)
    [link] = re.findall(r"inside\?[^\"')]*", row)
    assert ("causal=1" in link) == bool(words)
